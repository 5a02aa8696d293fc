import type { Selectable } from 'kysely';
import { sql } from 'kysely';
import { pageOf } from '../../domain/page.ts';
import { type Sandbox, unowned } from '../../domain/sandbox.ts';
import type { SandboxStore } from '../../ports/sandbox-store.ts';
import type { Database, Db } from './database.ts';
import type { EventLog } from './event-log.ts';
import { purgeRecords } from './record-purge.ts';
import { sandboxOf } from './sandbox-row.ts';
import { createSandboxWrites, pooled } from './sandbox-writes.ts';

export function createSandboxStore(db: Db, log: EventLog): SandboxStore {
  const all = db.selectFrom('sandboxes').selectAll();

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

    find: async (id) => firstOf(await all.where('id', '=', id).execute()),

    findMany: async (ids) => (ids.length === 0 ? [] : (await all.where('id', 'in', ids).execute()).map(sandboxOf)),

    findByInstance: async (instanceId) => firstOf(await all.where('instance_id', '=', instanceId).orderBy('seq').limit(1).execute()),

    pooled: async () => {
      const rows = await pooled(db).selectAll().orderBy('created_at').orderBy('id').execute();
      return rows.map((row) => ({ sandbox: sandboxOf(row), fingerprint: row.pool_fingerprint }));
    },

    longestIdle: async (ownerId, limit) => {
      // The literals are those of the partial index.
      let running = all.where('status', '=', sql.lit('RUNNING')).where('deleted_at', 'is', null);
      running = ownerId === null ? running.where('owner_id', '<>', sql.lit(unowned)) : running.where('owner_id', '=', ownerId);
      return (await running.orderBy('last_active_at').orderBy('id').limit(limit).execute()).map(sandboxOf);
    },

    search: async (ownerId, { status, specId }, { after, limit }) => {
      let found = all.where('owner_id', '=', ownerId).where('deleted_at', 'is', null);
      if (status !== undefined) found = found.where('status', '=', status);
      if (specId !== undefined) found = found.where('spec_id', '=', specId);
      if (after !== null) found = found.where((eb) => eb(eb.refTuple('created_at', 'id'), '<', eb.tuple(after.value, after.id)));
      const rows = await found.orderBy('created_at', 'desc').orderBy('id', 'desc').limit(limit + 1).execute();
      return pageOf(rows.map(sandboxOf), limit, ({ createdAt, id }) => ({ value: createdAt, id }));
    },

    scan: async (afterId, limit) => {
      const rows = await all.where('removed_at', 'is', null).where('id', '>', afterId ?? '').orderBy('id').limit(limit).execute();
      return rows.map(sandboxOf);
    },

    purge: (removedBefore) => purgeRecords(db, 'sandbox', removedBefore),
  };
}

function firstOf([row]: readonly Selectable<Database['sandboxes']>[]): Sandbox | null {
  return row === undefined ? null : sandboxOf(row);
}
