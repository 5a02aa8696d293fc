import { type RawBuilder, type Selectable, sql } from 'kysely';
import type { SandboxCount } from '../../domain/limit-usage.ts';
import { pageOf } from '../../domain/page.ts';
import type { OwnerScope } from '../../domain/principal.ts';
import { quarantineOwner } from '../../domain/quarantine.ts';
import { countsAsRunning, isPausedByRule } from '../../domain/sandbox-lifecycle.ts';
import type { LimitReached, NewSandboxLimits, SandboxLimits } from '../../domain/admission-limits.ts';
import { isPooled, pauseKinds, type Sandbox, type SandboxStatus, sandboxStatuses, unowned } from '../../domain/sandbox.ts';
import type { SandboxFilter, SandboxStore } from '../../ports/sandbox-store.ts';
import type { Database, Db, SandboxRow } from './database.ts';
import type { EventLog } from './event-store.ts';
import { findClaim, insertOnce } from './idempotency-claims.ts';
import { purgeRecords } from './record-removal.ts';
import {
  compiledOnce, countUpTo, type DamageListener, enumReader, firstReached, json, replaceOlder, rowOf, rowReader, scanOf, withoutIndex,
} from './record-rows.ts';
import { readSpec } from './stored-spec.ts';

export function createSandboxStore(db: Db, log: EventLog, onDamaged?: DamageListener): SandboxStore {
  const all = db.selectFrom('sandboxes').selectAll();
  const byId = compiledOnce(db, ({ id }: { id: string }) => all.where('id', '=', id));
  const search = compiledOnce(db, (values: SearchValues) => searchQuery(db, values));

  return {
    ...createSandboxWrites(log),

    touch: async (id, lastActiveAt) => {
      await db
        .updateTable('sandboxes')
        .set({ last_active_at: lastActiveAt })
        .where('id', '=', id)
        .where('last_active_at', '<', lastActiveAt)
        .executeTakeFirst();
    },

    findClaim: (claim) => findClaim(db, 'sandbox', claim),

    find: async (id) => firstOf(await byId({ id })),

    findMany: async (ids) => (ids.length === 0 ? [] : (await all.where('id', 'in', ids).execute()).map(sandboxOf)),

    findByInstance: async (instanceId) =>
      firstOf(await all.where('instance_id', '=', instanceId).orderBy('seq').limit(1).execute()),

    pooled: async () => {
      const rows = await pooled(db).selectAll().orderBy('created_at').orderBy('id').execute();
      return rows.map((row) => ({ sandbox: sandboxOf(row), fingerprint: row.pool_fingerprint }));
    },

    longestIdle: async (ownerId, limit) => {
      // Literals, because they must match the partial index.
      let running = all.where('status', '=', sql.lit('RUNNING')).where('deleted_at', 'is', null);
      running = ownerId === null ? running.where('owner_id', '<>', sql.lit(unowned)) : running.where('owner_id', '=', ownerId);
      return (await running.orderBy('last_active_at').orderBy('id').limit(limit).execute()).map(sandboxOf);
    },

    search: async (scope, { status, specId, metadata, oldestFirst, ...unused }, { after, limit }) => {
      // A filter without effect does not compile.
      unused satisfies Record<string, never>;
      const rows = await search({
        owner: scope ?? undefined, status, specId, metadata: metadata && JSON.stringify(metadata), oldestFirst: oldestFirst || undefined,
        afterTime: after?.value, afterId: after?.id, limit: limit + 1,
      });
      return pageOf(rows.map(sandboxOf), limit, ({ createdAt, id }) => ({ value: createdAt, id }));
    },

    countByStatus: (scope) => countSandboxes(db, scope),
    findFailedOrSlow: (scope, startingBefore, limit) => findFailedOrSlow(db, scope, startingBefore, limit),

    scan: scanOf('sandbox', all.where('removed_at', 'is', null), sandboxOf, onDamaged),

    purge: (removedBefore) => purgeRecords(db, 'sandbox', removedBefore),
  };
}

interface SearchValues extends Pick<SandboxFilter, 'status' | 'specId' | 'oldestFirst'> {
  /** Undefined: every owner. */
  readonly owner: string | undefined;
  /** The wanted pairs as JSON. */
  readonly metadata: string | undefined;
  readonly afterTime: number | undefined;
  readonly afterId: string | undefined;
  readonly limit: number;
}

function searchQuery(db: Db, { owner, status, specId, metadata, oldestFirst, afterTime, afterId, limit }: SearchValues) {
  const [direction, operator] = oldestFirst === undefined ? (['desc', '<'] as const) : (['asc', '>'] as const);
  let found = db.selectFrom('sandboxes').selectAll().where('deleted_at', 'is', null);
  found = owner === undefined ? found.where('owner_id', '<>', sql.lit(unowned)) : found.where('owner_id', '=', owner);
  if (status !== undefined) found = found.where('status', '=', status);
  if (specId !== undefined) found = found.where('spec_id', '=', specId);
  if (metadata !== undefined) found = found.where(hasMetadata(metadata));
  if (afterTime !== undefined && afterId !== undefined) {
    found = found.where((eb) => eb(eb.refTuple('created_at', 'id'), operator, eb.tuple(afterTime, afterId)));
  }
  return found.orderBy('created_at', direction).orderBy('id', direction).limit(limit);
}

/** Reads the metadata of all sandboxes of the owner: about 4 ms for a thousand. `wanted` has the pairs as JSON. */
function hasMetadata(wanted: string): RawBuilder<boolean> {
  return sql`not exists (
    select 1 from json_each(${wanted}) as wanted
    where not exists (select 1 from json_each(sandboxes.metadata) as pair where pair.key = wanted.key and pair.value = wanted.value)
  )`;
}

async function countSandboxes(db: Db, scope: OwnerScope): Promise<readonly SandboxCount[]> {
  const counted = db.selectFrom('sandboxes')
    .select((eb) => ['owner_id as ownerId', 'status', eb.fn.countAll<number>().as('count')])
    .where('owner_id', scope === null ? '<>' : '=', scope ?? unowned).where('deleted_at', 'is', null);
  return await counted.groupBy(['owner_id', 'status']).$narrowType<{ status: SandboxStatus }>().execute();
}

async function findFailedOrSlow(db: Db, scope: OwnerScope, startingBefore: number, limit: number): Promise<readonly Sandbox[]> {
  // Literals, because they must match the partial index. `withoutIndex` keeps SQLite from using an index on the owner.
  const found = db.selectFrom('sandboxes').selectAll()
    .where(withoutIndex<string>('owner_id'), scope === null ? '<>' : '=', scope ?? unowned).where('deleted_at', 'is', null)
    .where(sql<boolean>`status IN ('ERROR', 'MISSING', 'STARTING', 'RESUMING')`)
    .where((eb) => eb.or([eb('status', 'in', ['ERROR', 'MISSING']), eb('status_since', '<', startingBefore)]));
  return (await found.orderBy('status_since', 'desc').limit(limit).execute()).map(sandboxOf);
}

function firstOf([row]: readonly Selectable<Database['sandboxes']>[]): Sandbox | null {
  return row === undefined ? null : sandboxOf(row);
}

type SandboxWrites = Pick<SandboxStore, 'insert' | 'claimFromPool' | 'insertPooled' | 'replace' | 'admit'>;

/** A parameter, because with a literal each statement would be a new one for SQLite. */
const laterActivity = (at: number): RawBuilder<number> => sql`max(last_active_at, ${at})`;

/** Records activity of a sandbox. Returns false if it is not RUNNING. */
export async function touchIfRunning(db: Db, id: string, at: number): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('sandboxes')
    .set({ last_active_at: laterActivity(at) })
    .where('id', '=', id)
    .where('status', '=', 'RUNNING')
    .where('deleted_at', 'is', null)
    .executeTakeFirstOrThrow();
  return numUpdatedRows > 0n;
}

/** The writes of sandboxes. Each checks the limits in its own transaction, so concurrent writes can't exceed them. */
function createSandboxWrites(log: EventLog): SandboxWrites {
  return {
    insert: (sandbox, limits, claim, events = []) =>
      log.transaction((trx, writeEvents) => insertOnce(trx, 'sandbox', sandbox.id, claim, async () => {
        const reached = await limitReached(trx, sandbox, limits);
        if (reached !== null) return { kind: 'limit', reached };
        await writeEvents(events);
        await insertRow(trx, sandbox);
        return null;
      })),

    claimFromPool: (sandbox, member, limits, claim, events = []) =>
      log.transaction((trx, writeEvents) => insertOnce(trx, 'sandbox', sandbox.id, claim, async () => {
        // The member must be running, and have exactly this version.
        const available = pooled(trx).where('id', '=', member.id).where('version', '=', member.version).where('status', '=', 'RUNNING');
        if ((await available.select('id').executeTakeFirst()) === undefined) return { kind: 'stale' };
        const reached = await limitReached(trx, sandbox, limits);
        if (reached !== null) return { kind: 'limit', reached };
        await trx.deleteFrom('sandboxes').where('id', '=', member.id).executeTakeFirst();
        await writeEvents(events);
        await insertRow(trx, sandbox);
        return null;
      })),

    insertPooled: (sandbox, fingerprint, size) =>
      log.transaction(async (trx) => {
        if ((await stateOf(trx, sandbox.id)) !== undefined) return { kind: 'inserted' };
        if ((await countUpTo(trx, pooled(trx).where('pool_fingerprint', '=', fingerprint), size)) >= size) return { kind: 'full' };
        await insertRow(trx, sandbox, fingerprint);
        return { kind: 'inserted' };
      }),

    replace: (sandbox, events = []) =>
      log.transaction(async (trx, writeEvents) => {
        if (!(await replaceRow(trx, sandbox))) return { kind: 'stale' };
        await writeEvents(events);
        return { kind: 'replaced' };
      }),

    admit: (sandbox, limits, events = []) =>
      log.transaction(async (trx, writeEvents) => {
        const stored = await stateOf(trx, sandbox.id);
        if (stored?.version !== sandbox.version - 1) return { kind: 'stale' };
        // A sandbox that already counts as running needs no check.
        const reached = stored.running === 1 ? null : await runningLimitReached(trx, sandbox, limits);
        if (reached !== null) return { kind: 'limit', reached };
        await replaceRow(trx, sandbox);
        await writeEvents(events);
        return { kind: 'replaced' };
      }),
  };
}

function pooled(db: Db) {
  return db.selectFrom('sandboxes').where('owner_id', '=', sql.lit(unowned)).where('deleted_at', 'is', null);
}

async function stateOf(trx: Db, id: string) {
  return await trx.selectFrom('sandboxes').select(['version', 'running']).where('id', '=', id).executeTakeFirst();
}

/** Returns the limit that one more sandbox would exceed; null if there is room. */
async function limitReached(trx: Db, sandbox: Sandbox, limits: NewSandboxLimits): Promise<LimitReached | null> {
  if (isPooled(sandbox)) return null;
  const { fullDisk = null } = limits;
  const existing = trx.selectFrom('sandboxes').where('deleted_at', 'is', null);
  // Not of pool members. For `<>`, SQLite uses no index of the owner.
  const ofOwners = existing.where('owner_id', '>', sql.lit(unowned)).where('owner_id', '<>', sql.lit(quarantineOwner));
  return await runningLimitReached(trx, sandbox, limits)
    ?? await firstReached(trx, [
      ['existing_per_owner', limits.existingPerOwner, existing.where('owner_id', '=', sandbox.ownerId)],
      ['existing', limits.existing, ofOwners],
    ])
    ?? (fullDisk === null ? null : { limit: 'disk', max: fullDisk.limitPercent });
}

/** Returns the limit that one more running sandbox would exceed; null if there is room. */
async function runningLimitReached(trx: Db, sandbox: Sandbox, limits: SandboxLimits): Promise<LimitReached | null> {
  if (isPooled(sandbox)) return null;
  const running = trx.selectFrom('sandboxes').where('running', '=', sql.lit(1));
  return await firstReached(trx, [
    ['running_per_owner', limits.runningPerOwner, running.where('owner_id', '=', sandbox.ownerId)],
    ['running', limits.running, running],
  ]);
}

async function insertRow(trx: Db, sandbox: Sandbox, fingerprint = ''): Promise<void> {
  await trx.insertInto('sandboxes').values({ ...rowOfSandbox(sandbox), pool_fingerprint: fingerprint }).executeTakeFirst();
}

/** Replaces the row if it is exactly one version older. Keeps activity that was recorded after the caller read the record. */
async function replaceRow(trx: Db, sandbox: Sandbox): Promise<boolean> {
  const { id, last_active_at: active, ...others } = rowOfSandbox(sandbox);
  const update = trx.updateTable('sandboxes').set({ ...others, last_active_at: laterActivity(active) });
  const allowed = isPausedByRule(sandbox) ? update.where('last_active_at', '<=', active) : update;
  return await replaceOlder(allowed, { id, version: others.version });
}

function rowOfSandbox(sandbox: Sandbox): SandboxRow {
  return { ...rowOf(sandbox), spec_id: sandbox.spec.id, running: Number(countsAsRunning(sandbox) && !isPooled(sandbox)) };
}

const sandboxOf = rowReader<Sandbox, Selectable<Database['sandboxes']>>(
  {
    spec: readSpec,
    metadata: json,
    status: enumReader(sandboxStatuses),
    pauseKind: enumReader(pauseKinds),
    pausedBy: json,
    refused: json,
    exposedUrls: json,
    statusReason: json,
  },
  ['seq', 'spec_id', 'running', 'pool_fingerprint'],
);
