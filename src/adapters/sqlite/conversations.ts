import { pageOf } from '../../domain/page.ts';
import type { ConversationStore } from '../../ports/conversation-store.ts';
import { claimed, forgetClaims, keepClaim } from './claims.ts';
import type { Connection } from './connection.ts';
import { conversationOf, rowOfConversation } from './conversation-row.ts';
import { pageKeyFor, searchFor, searchValues } from './conversation-search.ts';
import {
  conversationExists,
  countUsingSandbox,
  deleteConversation,
  findConversation,
  insertConversation,
  removedConversations,
  replaceConversation,
  scanUnsettledConversations,
} from './conversation-statements.ts';
import { purgeInBatches } from './purge.ts';

export function createConversations(connection: Connection): ConversationStore {
  /** To be called inside a transaction. */
  function forget(id: string): void {
    forgetClaims(connection, 'conversation', id);
    connection.run(deleteConversation, { id });
  }

  return {
    insert: async (conversation, claim) =>
      connection.transaction(() => {
        if (connection.get(conversationExists, { id: conversation.id }) !== undefined) return { kind: 'inserted' };
        const earlier = claimed(connection, 'conversation', claim);
        if (earlier !== null) return earlier;
        connection.run(insertConversation, rowOfConversation(conversation));
        keepClaim(connection, 'conversation', claim, conversation.id);
        return { kind: 'inserted' };
      }),

    replace: async (conversation) => {
      const expected = conversation.generation - 1;
      const changed = connection.run(replaceConversation, { ...rowOfConversation(conversation), expected });
      return { kind: changed === 1 ? 'replaced' : 'stale' };
    },

    withdraw: async (id) => {
      connection.transaction(() => forget(id));
    },

    find: async (id) => {
      const row = connection.get(findConversation, { id });
      return row === undefined ? null : conversationOf(row);
    },

    search: async (ownerId, filter, order, page) => {
      const rows = connection.all(searchFor(filter, order), searchValues(ownerId, filter, order, page));
      return pageOf(rows.map(conversationOf), page.limit, pageKeyFor(order));
    },

    countUsing: async (sandboxId) => connection.get(countUsingSandbox, { sandbox: sandboxId })?.count ?? 0,

    scanUnsettled: async (afterId, limit) =>
      connection.all(scanUnsettledConversations, { after: afterId ?? '', limit }).map(conversationOf),

    purge: (removedBefore) =>
      purgeInBatches(connection, (limit) => connection.all(removedConversations, { before: removedBefore, limit }), forget),
  };
}
