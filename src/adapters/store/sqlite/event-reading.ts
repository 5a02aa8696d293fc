import type { EventFilter } from '../../../ports/event-store.ts';
import { eventColumns } from './event-row.ts';
import { build, type Statement, statement } from './statement.ts';
import type { EventDraftRow } from './tables.ts';

type EventRow = EventDraftRow & { sequence: number };

interface ReadValues {
  owner: string;
  conversation: string;
  sandbox: string;
  after: number;
  limit: number;
  /** The kinds that are wanted, by their place. */
  [kind: `kind${number}`]: string;
}

type Place = 'owner' | 'conversation' | 'sandbox';

/** The part of an index, in the order of the log, in which the events of one place (and one kind) lie. */
function range(p: ReadValues, place: Place, kind: string | undefined) {
  return build
    .selectFrom('events')
    .select(['sequence', ...eventColumns])
    .where('owner_id', '=', p.owner)
    .$if(place === 'conversation', (query) => query.where('conversation_id', '=', p.conversation))
    .$if(place === 'sandbox', (query) => query.where('sandbox_id', '=', p.sandbox).where('conversation_id', 'is', null))
    .$if(kind !== undefined, (query) => query.where('kind', '=', kind ?? ''))
    .where('sequence', '>', p.after);
}

/**
 * Merges one range for each place and kind. SQLite walks through them side by side, so what is read is what is answered
 * with, whatever lies between; and it is one statement, so that no event that is written meanwhile is skipped.
 */
function readStatement(places: readonly Place[], kinds: number): Statement<ReadValues, EventRow> {
  return statement((p: ReadValues) => {
    const wanted = kinds === 0 ? [undefined] : Array.from({ length: kinds }, (_, n) => p[`kind${n}`]);
    const [first = range(p, 'owner', undefined), ...others] = places.flatMap((place) => wanted.map((kind) => range(p, place, kind)));
    return others.reduce((merged, other) => merged.unionAll(other), first).orderBy('sequence').limit(p.limit);
  });
}

const statements = new Map<string, Statement<ReadValues, EventRow>>();

/** The statement for the filter, one for each set of places and number of kinds; null where no event can belong. */
export function readFor(filter: EventFilter): Statement<ReadValues, EventRow> | null {
  const kinds = filter.kinds === undefined ? 0 : kindsOf(filter).length;
  if (filter.kinds !== undefined && kinds === 0) return null;
  const places = placesOf(filter);
  const key = `${places.join()} ${kinds}`;
  const known = statements.get(key);
  if (known !== undefined) return known;
  const made = readStatement(places, kinds);
  statements.set(key, made);
  return made;
}

export function readValues(filter: EventFilter, after: number, limit: number): ReadValues {
  const kinds = Object.fromEntries(kindsOf(filter).map((kind, n) => [`kind${n}`, kind]));
  return { ...kinds, owner: filter.ownerId, conversation: filter.conversationId ?? '', sandbox: filter.sandboxId ?? '', after, limit };
}

function placesOf({ conversationId, sandboxId }: EventFilter): readonly Place[] {
  const places: Place[] = [];
  if (conversationId !== undefined) places.push('conversation');
  if (sandboxId !== undefined) places.push('sandbox');
  return places.length === 0 ? ['owner'] : places;
}

/** Each kind once: two ranges must not hold the same event. */
function kindsOf({ kinds = [] }: EventFilter): readonly string[] {
  return [...new Set(kinds)];
}
