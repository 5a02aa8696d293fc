import { sql } from 'kysely';
import { conversationColumns } from './conversation-row.ts';
import { build, pick, statement } from './statement.ts';
import type { ConversationRow } from './tables.ts';

export const insertConversation = statement((p: ConversationRow) =>
  build.insertInto('conversations').values(pick(p, conversationColumns)),
);

export const replaceConversation = statement((p: ConversationRow & { expected: number }) =>
  build
    .updateTable('conversations')
    .set(pick(p, conversationColumns))
    .where('id', '=', p.id)
    .where('generation', '=', p.expected),
);

export const findConversation = statement((p: { id: string }) =>
  build.selectFrom('conversations').select(conversationColumns).where('id', '=', p.id),
);

export const conversationExists = statement((p: { id: string }) =>
  build.selectFrom('conversations').select('id').where('id', '=', p.id),
);

export const conversationsUsing = statement((p: { sandbox: string }) =>
  build
    .selectFrom('conversations')
    .select(conversationColumns)
    .where('sandbox_id', '=', p.sandbox)
    .where('deleted_at', 'is', null),
);

export const scanUnsettledConversations = statement((p: { after: string; limit: number }) =>
  build
    .selectFrom('conversations')
    .select(conversationColumns)
    .where('unsettled', '=', sql.lit(1))
    .where('id', '>', p.after)
    .orderBy('id')
    .limit(p.limit),
);

export const removedConversations = statement((p: { before: number; limit: number }) =>
  build.selectFrom('conversations').select('id').where('removed_at', '<', p.before).limit(p.limit),
);

export const deleteConversation = statement((p: { id: string }) => build.deleteFrom('conversations').where('id', '=', p.id));
