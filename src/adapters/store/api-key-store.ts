import { keyAccesses } from '../../domain/principal.ts';
import type { ApiKeyRecord, LoginCode } from '../../domain/api-key.ts';
import type { ApiKeyStore } from '../../ports/api-key-store.ts';
import type { Db } from './database.ts';
import { compiledOnce, enumReader, json, rowOf, type RowOf, rowReader } from './record-rows.ts';

const recordOf = rowReader<ApiKeyRecord, RowOf<ApiKeyRecord>>({
  access: enumReader(keyAccesses),
  repositories: json,
});

const loginCodeOf = rowReader<LoginCode, RowOf<LoginCode>>({ access: enumReader(keyAccesses) });

export function createApiKeyStore(db: Db): ApiKeyStore {
  const byHash = compiledOnce(db, ({ hash }: { hash: string }) => db.selectFrom('api_keys').selectAll().where('hash', '=', hash));
  return {
    insert: async (key) =>
      db.transaction().execute(async (trx) => {
        const { name, createdAt } = key;
        await trx.updateTable('api_keys').set({ revoked_at: createdAt })
          .where('name', '=', name).where('revoked_at', 'is', null).where('expires_at', '<=', createdAt).executeTakeFirst();
        const { numInsertedOrUpdatedRows } = await trx
          .insertInto('api_keys')
          .values(rowOf(key))
          .onConflict((conflict) => conflict.doNothing())
          .executeTakeFirstOrThrow();
        return numInsertedOrUpdatedRows === 1n;
      }),

    findByHash: async (hash) => {
      const [row] = await byHash({ hash });
      return row === undefined ? null : recordOf(row);
    },

    list: async () => (await db.selectFrom('api_keys').selectAll().orderBy('created_at').orderBy('id').execute()).map(recordOf),

    // Looks up the id first: an id always belongs to one key, but a name only to a key that is not revoked.
    revoke: async (idOrName, revokedAt) =>
      db.transaction().execute(async (trx) => {
        const valid = trx.selectFrom('api_keys').select('id').where('revoked_at', 'is', null);
        const key =
          (await valid.where('id', '=', idOrName).executeTakeFirst()) ?? (await valid.where('name', '=', idOrName).executeTakeFirst());
        if (key === undefined) return false;
        await trx.updateTable('api_keys').set({ revoked_at: revokedAt }).where('id', '=', key.id).executeTakeFirst();
        return true;
      }),

    insertLoginCode: (code, now) =>
      db.transaction().execute(async (trx) => {
        await trx.deleteFrom('login_codes').where('expires_at', '<=', now).executeTakeFirst();
        await trx.insertInto('login_codes').values(rowOf(code)).executeTakeFirst();
      }),

    takeLoginCode: async (hash, now) => {
      const row = await db.deleteFrom('login_codes').where('hash', '=', hash).returningAll().executeTakeFirst();
      return row === undefined || row.expires_at <= now ? null : loginCodeOf(row);
    },
  };
}
