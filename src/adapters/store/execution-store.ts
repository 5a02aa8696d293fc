import { sql } from 'kysely';
import { type ExecutionRecord, executionRecordStatuses, isExecutionUnsettled } from '../../domain/execution.ts';
import { pageOf } from '../../domain/page.ts';
import type { ExecutionStore } from '../../ports/execution-store.ts';
import type { Db, ExecutionRow } from './database.ts';
import { findClaim, insertOnce } from './idempotency-claims.ts';
import { purgeRecords, undoInsert } from './record-removal.ts';
import { type DamageListener, enumReader, firstReached, flag, json, replaceOlder, rowOf, rowReader, scanOf } from './record-rows.ts';

/** The maximum number of ended executions to return for deletion. */
const maxEnded = 100;

export function createExecutionStore(db: Db, onDamaged?: DamageListener): ExecutionStore {
  const all = db.selectFrom('executions').selectAll();

  return {
    insert: (execution, limits, claim) =>
      db.transaction().execute((trx) => insertOnce(trx, 'execution', execution.id, claim, async () => {
        const rule = ['executions_per_sandbox', limits.executionsPerSandbox, running(trx, execution.sandboxId)] as const;
        const reached = await firstReached(trx, [rule]);
        if (reached !== null) return { kind: 'limit', reached };
        await trx.insertInto('executions').values(rowOfExecution(execution)).executeTakeFirst();
        return null;
      })),

    findClaim: (claim) => findClaim(db, 'execution', claim),

    undoInsert: (id) => db.transaction().execute((trx) => undoInsert(trx, 'execution', id)),

    replace: async (execution) => {
      const isReplaced = await replaceOlder(db.updateTable('executions').set(rowOfExecution(execution)), execution);
      return { kind: isReplaced ? 'replaced' : 'stale' };
    },

    find: async (id) => {
      const row = await all.where('id', '=', id).executeTakeFirst();
      return row === undefined ? null : executionOf(row);
    },

    list: async (sandboxId, { after, limit }) => {
      let found = all.where('sandbox_id', '=', sandboxId).where('deleted_at', 'is', null);
      if (after !== null) found = found.where((eb) => eb(eb.refTuple('started_at', 'id'), '<', eb.tuple(after.value, after.id)));
      const rows = await found.orderBy('started_at', 'desc').orderBy('id', 'desc').limit(limit + 1).execute();
      return pageOf(rows.map(executionOf), limit, ({ startedAt, id }) => ({ value: startedAt, id }));
    },

    running: async (sandboxId) => (await running(db, sandboxId).selectAll().execute()).map(executionOf),

    endedBeyondNewest: async (sandboxId, newest) => {
      const ended = all.where('sandbox_id', '=', sandboxId).where('status', '<>', sql.lit('running')).where('deleted_at', 'is', null);
      const rows = await ended.orderBy('started_at', 'desc').orderBy('id', 'desc').limit(maxEnded).offset(newest).execute();
      return rows.map(executionOf);
    },

    // A literal, because it must match the partial index.
    scanUnsettled: scanOf('execution', all.where('unsettled', '=', sql.lit(1)), executionOf, onDamaged),

    purge: (removedBefore) => purgeRecords(db, 'execution', removedBefore),
  };
}

/** The running executions of the sandbox. The literal must match the partial index. */
function running(db: Db, sandboxId: string) {
  const all = db.selectFrom('executions').where('sandbox_id', '=', sandboxId);
  return all.where('status', '=', sql.lit('running')).where('deleted_at', 'is', null);
}

function rowOfExecution(execution: ExecutionRecord): ExecutionRow {
  return { ...rowOf(execution), unsettled: Number(isExecutionUnsettled(execution)) };
}

const executionOf = rowReader<ExecutionRecord, ExecutionRow>(
  {
    command: json,
    status: enumReader(executionRecordStatuses),
    statusReason: json,
    stdin: flag,
    tty: flag,
    begun: flag,
    durable: flag,
  },
  ['unsettled'],
);
