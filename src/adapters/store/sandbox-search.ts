import { type RawBuilder, sql } from 'kysely';
import { type SandboxStatus, unowned } from '../../domain/sandbox.ts';
import type { Db } from './database.ts';

/** The values of a search. Those that are undefined filter nothing. */
export interface SandboxSearch {
  readonly owner: string | undefined;
  readonly status: SandboxStatus | undefined;
  readonly specId: string | undefined;
  /** The wanted pairs, as JSON. */
  readonly metadata: string | undefined;
  readonly oldestFirst: true | undefined;
  readonly afterCreated: number | undefined;
  readonly afterId: string | undefined;
  readonly limit: number;
}

export function searchSandboxes(db: Db, { owner, status, specId, metadata, oldestFirst, afterCreated, afterId, limit }: SandboxSearch) {
  const [direction, operator] = oldestFirst === undefined ? (['desc', '<'] as const) : (['asc', '>'] as const);
  let found = db.selectFrom('sandboxes').selectAll().where('deleted_at', 'is', null);
  found = owner === undefined ? found.where('owner_id', '<>', sql.lit(unowned)) : found.where('owner_id', '=', owner);
  if (status !== undefined) found = found.where('status', '=', status);
  if (specId !== undefined) found = found.where('spec_id', '=', specId);
  if (metadata !== undefined) found = found.where(hasMetadata(metadata));
  if (afterCreated !== undefined && afterId !== undefined) {
    found = found.where((eb) => eb(eb.refTuple('created_at', 'id'), operator, eb.tuple(afterCreated, afterId)));
  }
  return found.orderBy('created_at', direction).orderBy('id', direction).limit(limit);
}

/** Reads the metadata of all sandboxes of the owner: about 4 ms for a thousand. */
function hasMetadata(wanted: string): RawBuilder<boolean> {
  return sql`not exists (
    select 1 from json_each(${wanted}) as wanted
    where not exists (select 1 from json_each(sandboxes.metadata) as pair where pair.key = wanted.key and pair.value = wanted.value)
  )`;
}
