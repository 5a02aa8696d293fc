import type { OwnerScope } from '../../domain/principal.ts';
import { sql } from 'kysely';
import { permissionPolicies } from '../../domain/permission.ts';
import { isUnsettled } from '../../domain/conversation-next-step.ts';
import {
  agentStatuses, type Conversation, type ConversationSortOrder, conversationStartStatuses, foldTitle, type QueuedMessage,
  type StartedTurn,
} from '../../domain/conversation.ts';
import type { LimitReached } from '../../domain/admission-limits.ts';
import { type ConversationLimits, unlimitedConversations } from '../../domain/conversation-limits.ts';
import type { KeptChanges } from '../../domain/change.ts';
import type { EventDraft } from '../../domain/event.ts';
import { type Page, pageOf, type PageRequest } from '../../domain/page.ts';
import type { ConversationCount, ConversationFilter, ConversationStore } from '../../ports/conversation-store.ts';
import type { IdempotencyClaim } from '../../ports/idempotency-claim.ts';
import type { ConversationRow, Database, Db } from './database.ts';
import type { EventLog } from './event-store.ts';
import { findClaim, insertOnce, keepClaim } from './idempotency-claims.ts';
import { purgeRecords, undoInsert } from './record-removal.ts';
import {
  compiledOnce, type DamageListener, enumReader, firstReached, flag, json, replaceOlder, rowOf, rowReader, scanOf, withoutIndex,
} from './record-rows.ts';
import { touchIfRunning } from './sandbox-store.ts';

export function createConversationStore(db: Db, log: EventLog, onDamaged?: DamageListener): ConversationStore {
  const all = db.selectFrom('conversations').selectAll();
  const byId = compiledOnce(db, ({ id }: { id: string }) => all.where('id', '=', id));

  return {
    replace: (conversation, events = [], claim, activeAt) => replaceConversation(log, conversation, events, claim, activeAt),

    insert: (conversation, claim, events = [], limits = unlimitedConversations) =>
      log.transaction((trx, writeEvents) => insertOnce(trx, 'conversation', conversation.id, claim, async () => {
        const reached = await limitReached(trx, conversation, limits);
        if (reached !== null) return { kind: 'limit', reached };
        await trx.insertInto('conversations').values(rowOfConversation(conversation)).executeTakeFirst();
        await writeEvents(events);
        return null;
      })),

    findClaim: (claim) => findClaim(db, 'conversation', claim),

    undoInsert: (id) =>
      db.transaction().execute(async (trx) => {
        if (await undoInsert(trx, 'conversation', id)) await trx.deleteFrom('events').where('conversation_id', '=', id).executeTakeFirst();
      }),

    find: async (id) => {
      const [row] = await byId({ id });
      return row === undefined ? null : conversationOf(row);
    },

    search: (scope, filter, order, page) => searchConversations(db, scope, filter, order, page),

    countByStatus: (scope) => countConversations(db, scope),
    findFailedOrSlow: (scope, createdBefore, limit) => findFailedOrSlow(db, scope, createdBefore, limit),

    findUsing: async (sandboxId) => {
      const users = all.where('sandbox_id', '=', sandboxId).where('deleted_at', 'is', null).where('released_at', 'is', null);
      return (await users.execute()).map(conversationOf);
    },

    // A literal, because it must match the partial index.
    scanUnsettled: scanOf('conversation', all.where('unsettled', '=', sql.lit(1)), conversationOf, onDamaged),

    keepChanges: (id, kept, events = []) => keepChanges(log, id, kept, events),

    findKeptChanges: async (id) => {
      const row = await db.selectFrom('kept_changes').selectAll().where('conversation_id', '=', id).executeTakeFirst();
      return row === undefined ? null : keptChangesOf(row);
    },

    purge: (removedBefore) => purgeRecords(db, 'conversation', removedBefore),
  };
}

async function findFailedOrSlow(db: Db, scope: OwnerScope, createdBefore: number, limit: number): Promise<readonly Conversation[]> {
  // Literals, because they must match the partial index.
  let found = db.selectFrom('conversations').selectAll().where('deleted_at', 'is', null).where('archived_at', 'is', null)
    .where(sql<boolean>`(start_status <> 'READY' OR execution_status = 'error')`)
    .where((eb) => eb.or([
      eb('start_status', '=', 'ERROR'), eb('execution_status', '=', 'error'), eb('created_at', '<', createdBefore),
    ]));
  if (scope !== null) found = found.where(withoutIndex<string>('owner_id'), '=', scope);
  return (await found.orderBy('updated_at', 'desc').limit(limit).execute()).map(conversationOf);
}

async function countConversations(db: Db, scope: OwnerScope): Promise<readonly ConversationCount[]> {
  let counted = db.selectFrom('conversations')
    .select((eb) => [
      'owner_id as ownerId', 'start_status as startStatus', 'execution_status as executionStatus', eb.fn.countAll<number>().as('count'),
    ])
    .where('deleted_at', 'is', null).where('archived_at', 'is', null);
  if (scope !== null) counted = counted.where('owner_id', '=', scope);
  const rows = counted.groupBy(['owner_id', 'start_status', 'execution_status']);
  return await rows.$narrowType<Pick<ConversationCount, 'startStatus' | 'executionStatus'>>().execute();
}

/** Returns the limit that one more conversation would exceed; null if there is room. */
async function limitReached(trx: Db, { ownerId, sandboxId }: Conversation, limits: ConversationLimits): Promise<LimitReached | null> {
  const existing = trx.selectFrom('conversations').where('deleted_at', 'is', null).where('archived_at', 'is', null);
  return await firstReached(trx, [
    ['conversations_per_owner', limits.conversationsPerOwner, existing.where('owner_id', '=', ownerId)],
    ['conversations', limits.conversations, existing],
    ['conversations_per_sandbox', limits.conversationsPerSandbox, existing.where('sandbox_id', '=', sandboxId)],
  ]);
}

function replaceConversation(
  log: EventLog, conversation: Conversation, events: readonly EventDraft[],
  claim: IdempotencyClaim | undefined, activeAt: number | undefined,
): ReturnType<ConversationStore['replace']> {
  return log.transaction(async (trx, writeEvents) => {
    const earlier = await findClaim(trx, 'conversation', claim);
    if (earlier !== null) return earlier;
    if (activeAt !== undefined && !(await touchIfRunning(trx, conversation.sandboxId, activeAt))) return { kind: 'sandbox_not_running' };
    const update = trx.updateTable('conversations').set(rowOfConversation(conversation));
    if (!(await replaceOlder(update, conversation))) return { kind: 'stale' };
    await keepClaim(trx, 'conversation', claim, conversation.id);
    await writeEvents(events);
    return { kind: 'replaced' };
  });
}

function keepChanges(log: EventLog, conversationId: string, changes: KeptChanges, events: readonly EventDraft[]): Promise<void> {
  return log.transaction(async (trx, writeEvents) => {
    const row = rowOf(changes);
    const kept = trx.insertInto('kept_changes').values({ conversation_id: conversationId, ...row });
    await kept.onConflict((conflict) => conflict.column('conversation_id').doUpdateSet(row)).executeTakeFirst();
    await writeEvents(events);
  });
}

const sortings = {
  CREATED_AT: ['created_at', 'asc'],
  CREATED_AT_DESC: ['created_at', 'desc'],
  UPDATED_AT: ['updated_at', 'asc'],
  UPDATED_AT_DESC: ['updated_at', 'desc'],
} as const satisfies Readonly<Record<ConversationSortOrder, unknown>>;

/**
 * Uses the index of the owner and the sorted time. If the filter has ids or a sandbox, it uses their index instead, since they have few
 * conversations.
 */
async function searchConversations(
  db: Db,
  scope: OwnerScope,
  filter: ConversationFilter,
  order: ConversationSortOrder,
  { after, limit }: PageRequest,
): Promise<Page<Conversation>> {
  const { ids, sandboxId, titleContains, ...times } = filter;
  if (ids?.length === 0) return { items: [], next: null };
  const [column, direction] = sortings[order];
  const byOwner = ids === undefined && sandboxId === undefined;
  let found = db.selectFrom('conversations').selectAll().where('deleted_at', 'is', null);
  if (scope !== null) found = found.where(byOwner ? 'owner_id' : withoutIndex<string>('owner_id'), '=', scope);
  if (ids !== undefined) found = found.where('id', 'in', ids);
  if (sandboxId !== undefined) found = found.where(ids === undefined ? 'sandbox_id' : withoutIndex<string>('sandbox_id'), '=', sandboxId);
  if (titleContains !== undefined) found = found.where(sql<number>`instr(title_folded, ${foldTitle(titleContains)})`, '>', sql.lit(0));
  for (const [time, operator, bound] of boundsOf(times)) {
    if (bound === undefined) continue;
    // SQLite uses one lower and one upper bound of the index. The start of a later page is one of them, and narrower than the filter's.
    const pageIsNarrower = after !== null && (operator === '>=') === (direction === 'asc');
    found = found.where(time === column && !pageIsNarrower ? time : withoutIndex<number>(time), operator, bound);
  }
  if (after !== null) {
    found = found.where((eb) => eb(eb.refTuple(column, 'id'), direction === 'asc' ? '>' : '<', eb.tuple(after.value, after.id)));
  }
  const rows = await found.orderBy(column, direction).orderBy('id', direction).limit(limit + 1).execute();
  const valueOf = ({ createdAt, updatedAt }: Conversation): number => (column === 'created_at' ? createdAt : updatedAt);
  return pageOf(rows.map(conversationOf), limit, (last) => ({ value: valueOf(last), id: last.id }));
}

type TimeFilter = Omit<ConversationFilter, 'ids' | 'sandboxId' | 'titleContains'>;

function boundsOf({ createdFrom, createdBefore, updatedFrom, updatedBefore, ...unused }: TimeFilter) {
  // A filter without effect does not compile.
  unused satisfies Record<string, never>;
  return [
    ['created_at', '>=', createdFrom],
    ['created_at', '<', createdBefore],
    ['updated_at', '>=', updatedFrom],
    ['updated_at', '<', updatedBefore],
  ] as const;
}

function rowOfConversation(conversation: Conversation): ConversationRow {
  return {
    ...rowOf(conversation),
    title_folded: foldTitle(conversation.title ?? ''),
    unsettled: Number(isUnsettled(conversation)),
  };
}

const keptChangesOf = rowReader<KeptChanges, Database['kept_changes']>({ list: json }, ['conversation_id']);

/** Messages of older versions have no `sandboxVersion`. */
function completeMessage<M extends object>(message: M): M & { readonly sandboxVersion: number } {
  return { sandboxVersion: 0, ...message };
}

const conversationOf = rowReader<Conversation, ConversationRow>(
  {
    startsSandbox: flag,
    endsSandbox: flag,
    sandboxParameters: json,
    startPoint: json,
    possibleTips: json,
    publications: json,
    pullRequests: json,
    queue: (text) => json<readonly QueuedMessage[]>(text).map(completeMessage),
    turn: (text) => completeMessage(json<StartedTurn>(text)),
    permission: json,
    permissionPolicy: enumReader(permissionPolicies),
    microagents: json,
    startStatus: enumReader(conversationStartStatuses),
    executionStatus: enumReader(agentStatuses),
    statusReason: json,
  },
  ['title_folded', 'unsettled'],
);
