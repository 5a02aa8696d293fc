import { IncomingMessage } from 'node:http';
import { z } from 'zod';
import { pause, realTimers } from '../../shared/timeout.ts';
import { type Connection, streamed } from './engine.ts';
import { labels } from './labels.ts';

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

interface EventStream {
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

/** Tells when an execution may have ended, also one whose output nobody reads. */
export interface ExitNotices {
  /** Calls `wake` now and then. Answers with the function that ends it. */
  watch(exec: string, wake: () => void): () => void;
  /** Did the engine tell the end of this execution that is watched? */
  told(exec: string): boolean;
}

interface Watched {
  readonly wake: () => void;
  told: boolean;
}

const reconnectMs = 1_000;

/** One stream of the engine's events serves all; whenever it begins anew, all are woken. */
export function createExitNotices({ docker, call, closed, deployment }: Connection): ExitNotices {
  const watched = new Map<string, Watched>();
  let following = false;

  const read = async (): Promise<void> => {
    const filters = { type: ['container' as const], event: ['exec_die' as const], label: [`${labels.deployment}=${deployment}`] };
    const stream = await call((abortSignal) => docker.getEvents({ filters, abortSignal }), { signal: closed });
    if (!(stream instanceof IncomingMessage)) throw new TypeError('the client answers with something else than a response');
    stream.socket.setKeepAlive(true, 15_000);
    const end = (): void => void stream.destroy();
    closed.addEventListener('abort', end);
    try {
      for (const { wake } of watched.values()) wake();
      let text = '';
      for await (const chunk of stream) {
        const lines = `${text}${String(chunk)}`.split('\n');
        text = lines.pop() ?? '';
        for (const line of lines) notice(/"execID":"([0-9a-f]+)"/.exec(line)?.[1]);
      }
    } finally {
      closed.removeEventListener('abort', end);
      end();
    }
  };
  const notice = (exec: string | undefined): void => {
    const one = exec === undefined ? undefined : watched.get(exec);
    if (one === undefined) return;
    one.told = true;
    one.wake();
  };
  const follow = async (): Promise<void> => {
    if (following) return;
    following = true;
    while (watched.size > 0 && !closed.aborted) {
      // It is only a hint: whoever is woken looks for itself, and looks again when it begins anew.
      await read().catch(() => {});
      if (!closed.aborted) await pause(realTimers, reconnectMs, closed).catch(() => {});
    }
    following = false;
  };
  return {
    watch(exec, wake) {
      watched.set(exec, { wake, told: false });
      void follow();
      return () => void watched.delete(exec);
    },
    told: (exec) => watched.get(exec)?.told ?? false,
  };
}
