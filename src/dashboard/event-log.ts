import type { api } from '../client/index.ts';
import { currentSession } from './session.ts';

type Kinds = readonly api.Event['kind'][];

/** Returns the id of the newest event, of a conversation or of all that the key can see. */
export async function latestEventId(conversation: string | null, signal: AbortSignal): Promise<number> {
  const { client } = currentSession();
  const query = { after: 'latest' } as const;
  const { headers, body } = conversation === null
    ? await client.stream('GET /api/v1/events/stream', { query, signal })
    : await client.stream('GET /api/v1/app-conversations/{id}/events/stream', { path: { id: conversation }, query, signal });
  await body?.cancel();
  return Number(headers.get('Last-Event-ID'));
}

/** Returns the events after one id, up to another. */
export async function eventsBetween(conversation: string | null, after: number, last: number, kinds: Kinds): Promise<api.Event[]> {
  const { client } = currentSession();
  const query = { after: String(after), kinds, limit: 100 };
  const items = conversation === null ? client.items('GET /api/v1/events', { query })
    : client.items('GET /api/v1/app-conversations/{id}/events', { path: { id: conversation }, query });
  const events: api.Event[] = [];
  for await (const event of items) {
    if (event.id > last) break;
    events.push(event);
  }
  return events;
}

const historySpan = 1000;
const maxHistorySteps = 8;

/** Returns the moves of a sandbox, newest first, and whether its beginning is among them. */
export async function sandboxHistory({ id, created_at: createdAt }: api.Sandbox, signal: AbortSignal) {
  let last = await latestEventId(null, signal);
  const moves: api.SandboxMovedEvent[] = [];
  for (let step = 0, span = historySpan; step < maxHistorySteps && last > 0; step += 1, span *= 2) {
    signal.throwIfAborted();
    const after = Math.max(0, last - span);
    const events = await eventsBetween(null, after, last, ['sandbox_moved']);
    moves.push(...events.filter((event) => event.kind === 'sandbox_moved').filter((event) => event.sandbox_id === id).toReversed());
    last = after;
    const [oldest] = events;
    if (moves.at(-1)?.data.from === null || (oldest !== undefined && oldest.at < createdAt)) return { moves, isWhole: true };
  }
  return { moves, isWhole: last === 0 };
}
