import { isInScope } from '../../../../src/domain/principal.ts';
import { unlimitedConversations } from '../../../../src/domain/conversation-limits.ts';
import { isUnsettled } from '../../../../src/domain/conversation-next-step.ts';
import { type Conversation, type ConversationSortOrder, foldTitle } from '../../../../src/domain/conversation.ts';
import { statusChangeKinds } from '../../../../src/domain/event.ts';
import type { KeptChanges } from '../../../../src/domain/change.ts';
import type { PageKey } from '../../../../src/domain/page.ts';
import type { ConversationFilter, ConversationStore } from '../../../../src/ports/conversation-store.ts';
import type { ReferenceEvents } from './events.ts';
import { atOnce, Claims, firstReached, pageIn, scanOf } from './records.ts';

export function createReferenceConversations(log: ReferenceEvents): ConversationStore {
  const records = new Map<string, Conversation>();
  const kept = new Map<string, KeptChanges>();
  const claims = new Claims();
  const all = (): Conversation[] => [...records.values()];

  log.hasTurn = (id) => id !== null && (records.get(id)?.turn ?? null) !== null;

  function forget(id: string): void {
    records.delete(id);
    kept.delete(id);
    claims.forget(id);
  }

  return {
    replace: (conversation, events = [], claim) =>
      atOnce(() => {
        const earlier = claims.find(claim);
        if (earlier !== null) return earlier;
        if (records.get(conversation.id)?.version !== conversation.version - 1) return { kind: 'stale' };
        records.set(conversation.id, conversation);
        claims.keep(claim, conversation.id);
        log.write(events);
        return { kind: 'replaced' };
      }),

    insert: (conversation, claim, events = [], limits = unlimitedConversations) =>
      atOnce(() => {
        if (records.has(conversation.id)) return { kind: 'inserted' };
        const earlier = claims.find(claim);
        if (earlier !== null) return earlier;
        const existing = all().filter(({ deletedAt }) => deletedAt === null);
        const ofOwner = existing.filter(({ ownerId }) => ownerId === conversation.ownerId);
        const inSandbox = existing.filter(({ sandboxId }) => sandboxId === conversation.sandboxId);
        const reached = firstReached([
          ['conversations_per_owner', limits.conversationsPerOwner, ofOwner.length],
          ['conversations', limits.conversations, existing.length],
          ['conversations_per_sandbox', limits.conversationsPerSandbox, inSandbox.length],
        ]);
        if (reached !== null) return { kind: 'limit', reached };
        records.set(conversation.id, conversation);
        claims.keep(claim, conversation.id);
        log.write(events);
        return { kind: 'inserted' };
      }),

    findClaim: (claim) => atOnce(() => claims.find(claim)),

    undoInsert: (id) =>
      atOnce(() => {
        if (records.get(id)?.version !== 1) return;
        forget(id);
        log.forgetConversation(id);
      }),

    find: (id) => atOnce(() => records.get(id) ?? null),

    search: (scope, filter, order, page) =>
      atOnce(() => {
        const accepts = matcher(filter);
        const found = all().filter((one) => isInScope(one.ownerId, scope) && one.deletedAt === null && accepts(one));
        const { keyOf, direction } = sortings[order];
        return pageIn(found, keyOf, direction, page);
      }),

    countByStatus: (scope) =>
      atOnce(() => {
        const seen = all().filter((one) => one.deletedAt === null && one.archivedAt === null && isInScope(one.ownerId, scope));
        const alike = Map.groupBy(seen, (one) => JSON.stringify([one.ownerId, one.startStatus, one.executionStatus]));
        return [...alike.values()].flatMap((same) =>
          same.slice(0, 1).map(({ ownerId, startStatus, executionStatus }) => ({ ownerId, startStatus, executionStatus, count: same.length })));
      }),

    findFailedOrSlow: (scope, createdBefore, limit) =>
      atOnce(() =>
        all()
          .filter((one) => one.deletedAt === null && one.archivedAt === null && isInScope(one.ownerId, scope))
          .filter((one) => one.startStatus === 'ERROR' || one.executionStatus === 'error' || (one.startStatus !== 'READY' && one.createdAt < createdBefore))
          .toSorted((a, b) => b.updatedAt - a.updatedAt)
          .slice(0, limit),
      ),

    findUsing: (sandboxId) =>
      atOnce(() => all().filter((one) => one.sandboxId === sandboxId && one.deletedAt === null && one.releasedAt === null)),

    scanUnsettled: (afterId, limit) => atOnce(() => scanOf(all().filter(isUnsettled), afterId, limit)),

    keepChanges: (id, changes, events = []) =>
      atOnce(() => {
        kept.set(id, changes);
        log.write(events);
      }),

    findKeptChanges: (id) => atOnce(() => kept.get(id) ?? null),

    purge: (removedBefore) =>
      atOnce(() => {
        for (const { id, removedAt } of all()) {
          if (removedAt === null || removedAt >= removedBefore) continue;
          log.forgetConversation(id, statusChangeKinds);
          forget(id);
        }
        return false;
      }),
  };
}

interface Sorting {
  readonly keyOf: (conversation: Conversation) => PageKey;
  readonly direction: 'asc' | 'desc';
}

const byCreation = ({ createdAt, id }: Conversation): PageKey => ({ value: createdAt, id });
const byUpdate = ({ updatedAt, id }: Conversation): PageKey => ({ value: updatedAt, id });

const sortings: Readonly<Record<ConversationSortOrder, Sorting>> = {
  CREATED_AT: { keyOf: byCreation, direction: 'asc' },
  CREATED_AT_DESC: { keyOf: byCreation, direction: 'desc' },
  UPDATED_AT: { keyOf: byUpdate, direction: 'asc' },
  UPDATED_AT_DESC: { keyOf: byUpdate, direction: 'desc' },
};

function matcher(filter: ConversationFilter): (conversation: Conversation) => boolean {
  const { ids, sandboxId, titleContains = '', ...times } = filter;
  const { createdFrom = -Infinity, createdBefore = Infinity, updatedFrom = -Infinity, updatedBefore = Infinity, ...unused } = times;
  unused satisfies Record<string, never>;
  const title = foldTitle(titleContains);
  return (one) =>
    (ids === undefined || ids.includes(one.id)) &&
    (sandboxId === undefined || one.sandboxId === sandboxId) &&
    one.createdAt >= createdFrom &&
    one.createdAt < createdBefore &&
    one.updatedAt >= updatedFrom &&
    one.updatedAt < updatedBefore &&
    foldTitle(one.title ?? '').includes(title);
}
