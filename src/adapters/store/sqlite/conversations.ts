import type { Conversation } from '../../../domain/conversation.ts';
import type { EventDraft } from '../../../domain/event.ts';
import { pageOf } from '../../../domain/page.ts';
import type { IdempotencyClaim, ClaimOutcome } from '../../../ports/idempotency-claim.ts';
import type { ConversationStore } from '../../../ports/conversation-store.ts';
import type { ReplaceOutcome } from '../../../ports/sandbox-store.ts';
import { claimed, forgetClaims, keepClaim } from './claims.ts';
import type { Connection } from './connection.ts';
import { conversationOf, rowOfConversation } from './conversation-row.ts';
import { pageKeyFor, searchFor, searchValues } from './conversation-search.ts';
import {
  conversationExists,
  conversationsUsing,
  deleteConversation,
  findConversation,
  insertConversation,
  removedConversations,
  replaceConversation,
  scanUnsettledConversations,
} from './conversation-statements.ts';
import { forgetEventsOf } from './event-statements.ts';
import type { Journal } from './journal.ts';
import { purgeInBatches } from './purge.ts';

export function createConversations(connection: Connection, journal: Journal): ConversationStore {
  /** To be called inside a transaction. */
  function forget(id: string): void {
    forgetClaims(connection, 'conversation', id);
    connection.run(deleteConversation, { id });
  }

  function replace(conversation: Conversation, events?: readonly EventDraft[]): Promise<ReplaceOutcome>;
  function replace(
    conversation: Conversation,
    events: readonly EventDraft[],
    claim: IdempotencyClaim | undefined,
  ): Promise<ReplaceOutcome | ClaimOutcome>;
  async function replace(
    conversation: Conversation,
    events: readonly EventDraft[] = [],
    claim?: IdempotencyClaim,
  ): Promise<ReplaceOutcome | ClaimOutcome> {
    return journal.transaction((write) => {
      const earlier = claimed(connection, 'conversation', claim);
      if (earlier !== null) return earlier;
      const expected = conversation.version - 1;
      if (connection.run(replaceConversation, { ...rowOfConversation(conversation), expected }) === 0) return { kind: 'stale' };
      keepClaim(connection, 'conversation', claim, conversation.id);
      write(events);
      return { kind: 'replaced' };
    });
  }

  return {
    replace,

    insert: async (conversation, claim, events = []) =>
      journal.transaction((write) => {
        if (connection.get(conversationExists, { id: conversation.id }) !== undefined) return { kind: 'inserted' };
        const earlier = claimed(connection, 'conversation', claim);
        if (earlier !== null) return earlier;
        connection.run(insertConversation, rowOfConversation(conversation));
        keepClaim(connection, 'conversation', claim, conversation.id);
        write(events);
        return { kind: 'inserted' };
      }),

    withdraw: async (id) => {
      connection.transaction(() => {
        forget(id);
        connection.run(forgetEventsOf, { conversation: id });
      });
    },

    find: async (id) => {
      const row = connection.get(findConversation, { id });
      return row === undefined ? null : conversationOf(row);
    },

    search: async (ownerId, filter, order, page) => {
      const rows = connection.all(searchFor(filter, order), searchValues(ownerId, filter, order, page));
      return pageOf(rows.map(conversationOf), page.limit, pageKeyFor(order));
    },

    findUsing: async (sandboxId) => connection.all(conversationsUsing, { sandbox: sandboxId }).map(conversationOf),

    scanUnsettled: async (afterId, limit) =>
      connection.all(scanUnsettledConversations, { after: afterId ?? '', limit }).map(conversationOf),

    purge: (removedBefore) =>
      purgeInBatches(connection, (limit) => connection.all(removedConversations, { before: removedBefore, limit }), forget),
  };
}
