import type { Event } from '../../domain/event.ts';

/** After how many milliseconds a client reconnects. */
const retryMs = 1000;

export const eventStreamMedia = 'text/event-stream; charset=utf-8';

/** The interval of heartbeats in an idle stream, in milliseconds. */
export const defaultHeartbeatMs = 15_000;

/**
 * Yields the events as server-sent events. To continue, a client reconnects with the id of the last event that it received. `after`, the
 * id before the first event, is sent first, without data, so a client that received no event can also continue. Source: the HTML standard,
 * 9.2.
 */
export async function* serverSentEvents(
  after: number,
  batches: AsyncIterable<readonly Event[]>,
  present: (event: Event) => unknown,
): AsyncGenerator<string, void> {
  yield `id: ${after}\nretry: ${retryMs}\n\n`;
  for await (const batch of batches) {
    for (const event of batch) {
      // `JSON.stringify` returns one line: line breaks in strings are escaped.
      yield `id: ${event.sequence}\nevent: ${event.kind}\ndata: ${JSON.stringify(present(event))}\n\n`;
    }
  }
}
