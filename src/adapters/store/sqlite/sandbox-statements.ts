import { sql } from 'kysely';
import { unowned } from '../../../domain/sandbox.ts';
import { membersOf } from './lists.ts';
import { sandboxColumns } from './sandbox-row.ts';
import { build, pick, statement } from './statement.ts';
import type { SandboxRow } from './tables.ts';

export const insertSandbox = statement((p: SandboxRow & { pool_fingerprint: string }) =>
  build.insertInto('sandboxes').values(pick(p, [...sandboxColumns, 'pool_fingerprint'])),
);

/** Activity that was noted since the caller read the record stays noted. */
export const replaceSandbox = statement((p: SandboxRow & { expected: number }) => {
  const { id, last_active_at, ...others } = pick(p, sandboxColumns);
  return build
    .updateTable('sandboxes')
    .set({ ...others, last_active_at: sql<number>`max(last_active_at, ${last_active_at})` })
    .where('id', '=', id)
    .where('generation', '=', p.expected);
});

export const touchSandbox = statement((p: { id: string; at: number }) =>
  build.updateTable('sandboxes').set({ last_active_at: p.at }).where('id', '=', p.id).where('last_active_at', '<', p.at),
);

export const sandboxState = statement((p: { id: string }) =>
  build.selectFrom('sandboxes').select(['generation', 'running']).where('id', '=', p.id),
);

export const findSandbox = statement((p: { id: string }) =>
  build.selectFrom('sandboxes').select(sandboxColumns).where('id', '=', p.id),
);

export const findSandboxes = statement((p: { ids: string }) =>
  build.selectFrom('sandboxes').select(sandboxColumns).where('id', 'in', membersOf(p.ids)),
);

export const findSandboxByInstance = statement((p: { instance: string }) =>
  build.selectFrom('sandboxes').select(sandboxColumns).where('instance_id', '=', p.instance).orderBy('seq').limit(sql.lit(1)),
);

/** How many run, counted no further than to the limit. */
export const countRunning = statement((p: { max: number }) =>
  build
    .selectFrom((eb) => eb.selectFrom('sandboxes').select('id').where('running', '=', sql.lit(1)).limit(p.max).as('some'))
    .select((eb) => eb.fn.countAll<number>().as('count')),
);

export const countRunningOf = statement((p: { owner: string; max: number }) =>
  build
    .selectFrom((eb) =>
      eb
        .selectFrom('sandboxes')
        .select('id')
        .where('running', '=', sql.lit(1))
        .where('owner_id', '=', p.owner)
        .limit(p.max)
        .as('some'),
    )
    .select((eb) => eb.fn.countAll<number>().as('count')),
);

/** How many there are, whatever their status, counted no further than to the limit. */
export const countExisting = statement((p: { max: number }) =>
  build
    .selectFrom((eb) =>
      eb
        .selectFrom('sandboxes')
        .select('seq')
        .where('deleted_at', 'is', null)
        .where('owner_id', '>', sql.lit(unowned))
        .limit(p.max)
        .as('some'),
    )
    .select((eb) => eb.fn.countAll<number>().as('count')),
);

export const countExistingOf = statement((p: { owner: string; max: number }) =>
  build
    .selectFrom((eb) =>
      eb
        .selectFrom('sandboxes')
        .select('seq')
        .where('deleted_at', 'is', null)
        .where('owner_id', '=', p.owner)
        .limit(p.max)
        .as('some'),
    )
    .select((eb) => eb.fn.countAll<number>().as('count')),
);

/** Those that wait in a pool, oldest first. */
export const pooledSandboxes = statement(() =>
  build
    .selectFrom('sandboxes')
    .select([...sandboxColumns, 'pool_fingerprint'])
    .where('owner_id', '=', sql.lit(unowned))
    .where('deleted_at', 'is', null)
    .orderBy('created_at')
    .orderBy('id'),
);

/** How many members a pool has, counted no further than to its size. */
export const countPooled = statement((p: { fingerprint: string; max: number }) =>
  build
    .selectFrom((eb) =>
      eb
        .selectFrom('sandboxes')
        .select('id')
        .where('owner_id', '=', sql.lit(unowned))
        .where('deleted_at', 'is', null)
        .where('pool_fingerprint', '=', p.fingerprint)
        .limit(p.max)
        .as('some'),
    )
    .select((eb) => eb.fn.countAll<number>().as('count')),
);

/** The member of a pool that is there to be handed out. */
export const findReady = statement((p: { id: string; generation: number }) =>
  build
    .selectFrom('sandboxes')
    .select('id')
    .where('id', '=', p.id)
    .where('generation', '=', p.generation)
    .where('owner_id', '=', sql.lit(unowned))
    .where('status', '=', sql.lit('RUNNING'))
    .where('deleted_at', 'is', null),
);

export const idleSandboxes = statement((p: { limit: number }) => idle().limit(p.limit));

export const idleSandboxesOf = statement((p: { owner: string; limit: number }) => idle().where('owner_id', '=', p.owner).limit(p.limit));

/** Those that run, the longest without activity first. */
function idle() {
  return build
    .selectFrom('sandboxes')
    .select(sandboxColumns)
    .where('status', '=', sql.lit('RUNNING'))
    .where('deleted_at', 'is', null)
    .where('owner_id', '<>', sql.lit(unowned))
    .orderBy('last_active_at')
    .orderBy('id');
}

export const scanSandboxes = statement((p: { after: string; limit: number }) =>
  build
    .selectFrom('sandboxes')
    .select(sandboxColumns)
    .where('removed_at', 'is', null)
    .where('id', '>', p.after)
    .orderBy('id')
    .limit(p.limit),
);

export const removedSandboxes = statement((p: { before: number; limit: number }) =>
  build.selectFrom('sandboxes').select('id').where('removed_at', '<', p.before).limit(p.limit),
);

export const deleteSandbox = statement((p: { id: string }) => build.deleteFrom('sandboxes').where('id', '=', p.id));

interface SearchValues {
  owner: string;
  status: string;
  spec: string;
  value: number;
  id: string;
  limit: number;
}

/** Where the page of an owner's sandboxes that follows a place is found. */
function page(p: SearchValues, byStatus: boolean, bySpec: boolean) {
  return build
    .selectFrom('sandboxes')
    .where('owner_id', '=', p.owner)
    .where('deleted_at', 'is', null)
    .$if(byStatus, (query) => query.where('status', '=', p.status))
    .$if(bySpec, (query) => query.where('spec_id', '=', p.spec))
    .where((eb) => eb(eb.refTuple('created_at', 'id'), '<', eb.tuple(p.value, p.id)))
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .limit(p.limit);
}

/** One for each set of filters. */
function search(byStatus: boolean, bySpec: boolean) {
  return statement((p: SearchValues) => page(p, byStatus, bySpec).select(sandboxColumns));
}

export const searchSandboxes = {
  all: search(false, false),
  byStatus: search(true, false),
  bySpec: search(false, true),
  byBoth: search(true, true),
};
