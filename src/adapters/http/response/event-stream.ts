import type { Event } from '../../../domain/event.ts';
import { presentEvent } from '../schema/event.ts';

/** How soon a client that lost the stream asks for it again, in milliseconds. */
const retryMs = 1000;

/** About so many characters are handed on at a time: few writes where much is told, and little that a slow client holds. */
const partLength = 65_536;

/**
 * Events as server-sent events, of which a client asks for the rest by the id of the last one that it saw. `after` is the
 * event that the first follows on: its id is told first, without data, so that a client that is cut off before it saw any
 * goes on from there too. Source: the HTML standard, 9.2.
 */
export async function* eventStream(after: number, batches: AsyncIterable<readonly Event[]>): AsyncGenerator<string, void> {
  yield `id: ${after}\nretry: ${retryMs}\n\n`;
  for await (const batch of batches) {
    let part = '';
    for (const event of batch) {
      part += serverSentEvent(event);
      if (part.length < partLength) continue;
      yield part;
      part = '';
    }
    if (part !== '') yield part;
  }
}

/** JSON has no line breaks outside of its texts, and none unescaped in them: one line of data holds it. */
function serverSentEvent(event: Event): string {
  return `id: ${event.sequence}\nevent: ${event.kind}\ndata: ${JSON.stringify(presentEvent(event))}\n\n`;
}
