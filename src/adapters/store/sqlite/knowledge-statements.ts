import { build, pick, statement } from './statement.ts';
import type { KnowledgeRow } from './tables.ts';

export const findKnowledge = statement((p: { scope: string; key: string }) =>
  build.selectFrom('knowledge').select(['id', 'value', 'bytes', 'used_at']).where('scope', '=', p.scope).where('key', '=', p.key),
);

export const addKnowledge = statement((p: KnowledgeRow) =>
  build.insertInto('knowledge').values(pick(p, ['scope', 'key', 'value', 'bytes', 'used_at'])),
);

export const touchKnowledge = statement((p: { id: number; used_at: number }) =>
  build.updateTable('knowledge').set({ used_at: p.used_at }).where('id', '=', p.id),
);

export const evictKnowledge = statement((p: { id: number }) => build.deleteFrom('knowledge').where('id', '=', p.id));

/** What was not used for longest. */
export const oldestKnowledge = statement(() =>
  build.selectFrom('knowledge').select(['id', 'bytes']).orderBy('used_at').orderBy('id').limit(1),
);

export const readSize = statement(() => build.selectFrom('knowledge_size').select(['bytes']));

export const writeSize = statement((p: { bytes: number }) => build.updateTable('knowledge_size').set({ bytes: p.bytes }));
