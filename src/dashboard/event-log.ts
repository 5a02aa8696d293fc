import type { api } from '../client/index.ts';
import { currentSession } from './session.ts';

type Kinds = readonly api.Event['kind'][];

/** Returns the id of the newest event that a conversation may have. */
export async function latestEventId(id: string, signal: AbortSignal): Promise<number> {
  const input = { path: { id }, query: { after: 'latest' }, signal } as const;
  const { headers, body } = await currentSession().client.stream('GET /api/v1/app-conversations/{id}/events/stream', input);
  await body?.cancel();
  return Number(headers.get('Last-Event-ID'));
}

/** Returns the events of a conversation after one id, up to another. */
export async function eventsBetween(id: string, after: number, last: number, kinds: Kinds): Promise<api.Event[]> {
  const query = { after: String(after), kinds, limit: 100 };
  const events: api.Event[] = [];
  for await (const event of currentSession().client.items('GET /api/v1/app-conversations/{id}/events', { path: { id }, query })) {
    if (event.id > last) break;
    events.push(event);
  }
  return events;
}

/** Returns the moves of a sandbox, newest first. */
export async function sandboxMoves(id: string, signal: AbortSignal): Promise<readonly api.SandboxMovedEvent[]> {
  const query = { sandbox_id__eq: id, kinds: ['sandbox_moved'], limit: 100 } as const;
  const moves: api.SandboxMovedEvent[] = [];
  for await (const event of currentSession().client.items('GET /api/v1/events', { query, signal })) {
    if (event.kind === 'sandbox_moved') moves.push(event);
  }
  return moves.toReversed();
}
