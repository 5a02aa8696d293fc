import type { IncomingMessage } from 'node:http';
import { z } from 'zod';
import type { Connection } from '../connect.ts';
import { streamed } from '../connection/streamed.ts';
import { labels } from '../identity.ts';

const actions = ['start', 'die', 'kill', 'pause', 'unpause', 'destroy'] as const;

/** Something that happened to a container of the deployment's sandboxes. */
export interface EngineEvent {
  readonly action: (typeof actions)[number];
  /** The sandbox's id. */
  readonly id: string;
  readonly containerId: string;
  /** The number of the signal that a `kill` sent. */
  readonly signal: string | null;
}

const Message = z.object({
  Action: z.enum(actions),
  Actor: z.object({ ID: z.string(), Attributes: z.record(z.string(), z.string()) }),
});

const maxLine = 1 << 20;

export interface EventStream {
  /** When it was opened, in milliseconds of the engine's clock, which tells whole seconds; undefined where it does not say. */
  readonly openedAt: number | undefined;
  /** Ends when the connection does, and throws where it was cut. */
  readonly events: AsyncIterable<EngineEvent>;
  readonly close: () => void;
}

/** Follows what happens to the deployment's containers from now on. Rejects as calls do. */
export async function openStream({ docker, deployment, call }: Connection, signal: AbortSignal): Promise<EventStream> {
  const filters = { type: ['container' as const], label: [`${labels.deployment}=${deployment}`], event: [...actions] };
  const answer = streamed(await call((abortSignal) => docker.getEvents({ filters, abortSignal }), { signal }));
  // A host that went without a word is noticed.
  answer.socket.setKeepAlive(true, 15_000);
  const date = Date.parse(answer.headers.date ?? '');
  return {
    openedAt: Number.isNaN(date) ? undefined : date,
    events: parse(answer),
    close: () => void answer.destroy(),
  };
}

async function* parse(answer: IncomingMessage): AsyncGenerator<EngineEvent> {
  let rest = '';
  answer.setEncoding('utf8');
  for await (const chunk of answer) {
    const lines = (rest + String(chunk)).split('\n');
    rest = lines.pop() ?? '';
    if (rest.length > maxLine) throw new Error('an event has no end');
    for (const line of lines) {
      const event = eventOf(line);
      if (event !== null) yield event;
    }
  }
}

function eventOf(line: string): EngineEvent | null {
  try {
    const { Action: action, Actor } = Message.parse(JSON.parse(line));
    const id = Actor.Attributes[labels.sandbox];
    return id === undefined ? null : { action, id, containerId: Actor.ID, signal: Actor.Attributes['signal'] ?? null };
  } catch {
    return null;
  }
}
