import { sql } from 'kysely';
import type { Conversation } from '../../domain/conversation.ts';
import type { EventDraft } from '../../domain/event.ts';
import type { ClaimOutcome, IdempotencyClaim } from '../../ports/idempotency-claim.ts';
import type { ConversationStore } from '../../ports/conversation-store.ts';
import type { ReplaceOutcome } from '../../ports/sandbox-store.ts';
import { conversationOf, rowOfConversation } from './conversation-row.ts';
import { searchConversations } from './conversation-search.ts';
import type { Db } from './database.ts';
import type { EventLog } from './event-log.ts';
import { findClaim, forgetClaims, keepClaim } from './idempotency-claims.ts';
import { purgeRecords } from './record-purge.ts';

export function createConversationStore(db: Db, log: EventLog): ConversationStore {
  const all = db.selectFrom('conversations').selectAll();

  return {
    replace: createReplace(log),

    insert: (conversation, claim, events = []) =>
      log.transaction(async (trx, writeEvents) => {
        const existing = await trx.selectFrom('conversations').select('id').where('id', '=', conversation.id).executeTakeFirst();
        if (existing !== undefined) return { kind: 'inserted' };
        const earlier = await findClaim(trx, 'conversation', claim);
        if (earlier !== null) return earlier;
        await trx.insertInto('conversations').values(rowOfConversation(conversation)).executeTakeFirst();
        await keepClaim(trx, 'conversation', claim, conversation.id);
        await writeEvents(events);
        return { kind: 'inserted' };
      }),

    withdraw: (id) =>
      db.transaction().execute(async (trx) => {
        await forgetClaims(trx, 'conversation', [id]);
        await trx.deleteFrom('conversations').where('id', '=', id).executeTakeFirst();
        await trx.deleteFrom('events').where('conversation_id', '=', id).executeTakeFirst();
      }),

    find: async (id) => {
      const row = await all.where('id', '=', id).executeTakeFirst();
      return row === undefined ? null : conversationOf(row);
    },

    search: (ownerId, filter, order, page) => searchConversations(db, ownerId, filter, order, page),

    findUsing: async (sandboxId) =>
      (await all.where('sandbox_id', '=', sandboxId).where('deleted_at', 'is', null).execute()).map(conversationOf),

    scanUnsettled: async (afterId, limit) => {
      // The literal is that of the partial index.
      const unsettled = all.where('unsettled', '=', sql.lit(1)).where('id', '>', afterId ?? '');
      return (await unsettled.orderBy('id').limit(limit).execute()).map(conversationOf);
    },

    purge: (removedBefore) => purgeRecords(db, 'conversation', removedBefore),
  };
}

function createReplace(log: EventLog): ConversationStore['replace'] {
  function replace(conversation: Conversation, events?: readonly EventDraft[]): Promise<ReplaceOutcome>;
  function replace(
    conversation: Conversation,
    events: readonly EventDraft[],
    claim: IdempotencyClaim | undefined,
  ): Promise<ReplaceOutcome | ClaimOutcome>;
  function replace(
    conversation: Conversation,
    events: readonly EventDraft[] = [],
    claim?: IdempotencyClaim,
  ): Promise<ReplaceOutcome | ClaimOutcome> {
    return log.transaction(async (trx, writeEvents) => {
      const earlier = await findClaim(trx, 'conversation', claim);
      if (earlier !== null) return earlier;
      const { numUpdatedRows } = await trx
        .updateTable('conversations')
        .set(rowOfConversation(conversation))
        .where('id', '=', conversation.id)
        .where('version', '=', conversation.version - 1)
        .executeTakeFirstOrThrow();
      if (numUpdatedRows === 0n) return { kind: 'stale' };
      await keepClaim(trx, 'conversation', claim, conversation.id);
      await writeEvents(events);
      return { kind: 'replaced' };
    });
  }
  return replace;
}
