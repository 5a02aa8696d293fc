import { sql } from 'kysely';
import { eventColumns } from './event-row.ts';
import { build, pick, statement } from './statement.ts';
import type { EventDraftRow } from './tables.ts';

export const insertEvent = statement((p: EventDraftRow) => build.insertInto('events').values(pick(p, eventColumns)));

/** SQLite's own note of the highest number that was given, which stays when the event goes. */
export const latestSequence = statement(() => build.selectFrom('sqlite_sequence').select('seq').where('name', '=', sql.lit('events')));

export const forgetEventsOf = statement((p: { conversation: string }) =>
  build.deleteFrom('events').where('conversation_id', '=', p.conversation),
);

export const purgeEvents = statement((p: { before: number; limit: number }) =>
  build
    .deleteFrom('events')
    .where('sequence', 'in', (eb) =>
      eb.selectFrom('events').select('sequence').where('at', '<', p.before).orderBy('at').orderBy('sequence').limit(p.limit),
    ),
);
