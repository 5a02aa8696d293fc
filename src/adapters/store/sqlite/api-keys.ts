import { type ApiKeyRecord, keyAccesses } from '../../../domain/principal.ts';
import type { ApiKeyStore } from '../../../ports/api-key-store.ts';
import { wordOf } from './columns.ts';
import type { Connection } from './connection.ts';
import { build, pick, statement } from './statement.ts';
import type { ApiKeyRow } from './tables.ts';

const columns = ['id', 'name', 'user_id', 'access', 'hash', 'created_at', 'expires_at', 'revoked_at'] as const;

const insert = statement((p: ApiKeyRow) =>
  build
    .insertInto('api_keys')
    .values(pick(p, columns))
    .onConflict((conflict) => conflict.doNothing()),
);

const byHash = statement((p: { hash: string }) => build.selectFrom('api_keys').select(columns).where('hash', '=', p.hash));

const all = statement(() => build.selectFrom('api_keys').select(columns).orderBy('created_at').orderBy('id'));

const revocable = statement((p: { idOrName: string }) =>
  build
    .selectFrom('api_keys')
    .select('id')
    .where('revoked_at', 'is', null)
    .where((eb) => eb.or([eb('id', '=', p.idOrName), eb('name', '=', p.idOrName)]))
    .orderBy((eb) => eb('id', '=', p.idOrName), 'desc')
    .limit(1),
);

const revoke = statement((p: { id: string; at: number }) =>
  build.updateTable('api_keys').set({ revoked_at: p.at }).where('id', '=', p.id),
);

export function createApiKeyStore(connection: Connection): ApiKeyStore {
  return {
    insert: async (key) => connection.run(insert, rowOf(key)) === 1,

    findByHash: async (hash) => {
      const row = connection.get(byHash, { hash });
      return row === undefined ? null : recordOf(row);
    },

    list: async () => connection.all(all, {}).map(recordOf),

    revoke: async (idOrName, revokedAt) =>
      connection.transaction(() => {
        // An id names one key for ever, a name only for now: the id goes first.
        const found = connection.get(revocable, { idOrName });
        return found !== undefined && connection.run(revoke, { id: found.id, at: revokedAt }) === 1;
      }),
  };
}

function rowOf(key: ApiKeyRecord): ApiKeyRow {
  return {
    id: key.id,
    name: key.name,
    user_id: key.userId,
    access: key.access,
    hash: key.hash,
    created_at: key.createdAt,
    expires_at: key.expiresAt,
    revoked_at: key.revokedAt,
  };
}

function recordOf(row: ApiKeyRow): ApiKeyRecord {
  return {
    id: row.id,
    name: row.name,
    userId: row.user_id,
    access: wordOf(keyAccesses, row.access),
    hash: row.hash,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    revokedAt: row.revoked_at,
  };
}
