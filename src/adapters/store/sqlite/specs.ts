import type { SpecStore } from '../../../ports/spec-store.ts';
import type { Connection } from './connection.ts';
import { build, pick, statement } from './statement.ts';
import type { SpecRow } from './tables.ts';

const find = statement((p: { id: string }) =>
  build.selectFrom('specs').select(['fingerprint', 'first_seen']).where('id', '=', p.id),
);

const write = statement((p: SpecRow) =>
  build
    .insertInto('specs')
    .values(pick(p, ['id', 'fingerprint', 'first_seen']))
    .onConflict((conflict) => conflict.column('id').doUpdateSet(pick(p, ['fingerprint', 'first_seen']))),
);

export function createSpecs(connection: Connection): SpecStore {
  function seen(id: string, fingerprint: string): number | null {
    const row = connection.get(find, { id });
    return row?.fingerprint === fingerprint ? row.first_seen : null;
  }

  return {
    // What is known already, which is nearly always, takes no write lock.
    firstSeen: async (id, fingerprint, now) =>
      seen(id, fingerprint) ??
      connection.transaction(() => {
        const known = seen(id, fingerprint);
        if (known !== null) return known;
        connection.run(write, { id, fingerprint, first_seen: now });
        return now;
      }),
  };
}
