import type { IncomingMessage } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { z } from 'zod';
import { type Engine, streamed } from './engine.ts';
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

export interface EventStream {
  /** When it was opened, in milliseconds of the engine's clock, which shows whole seconds. Undefined if the engine does not say. */
  readonly openedAt: number | undefined;
  /** Ends when the connection does, and throws if it was cut. */
  readonly events: AsyncIterable<EngineEvent>;
  readonly close: () => void;
}

/** Follows what happens to the deployment's containers from now on. Rejects as calls do. */
export async function openEvents(engine: Engine, signal: AbortSignal): Promise<EventStream> {
  const answer = await openStream(engine, actions, signal);
  const date = Date.parse(answer.headers.date ?? '');
  return {
    openedAt: Number.isNaN(date) ? undefined : date,
    events: parse(answer),
    close: () => void answer.destroy(),
  };
}

async function openStream({ docker, deployment, call }: Engine, event: readonly string[], signal: AbortSignal): Promise<IncomingMessage> {
  const filters = { type: ['container' as const], label: [`${labels.deployment}=${deployment}`], event: [...event] };
  const answer = streamed(await call((abortSignal) => docker.getEvents({ filters, abortSignal }), { signal }));
  // A host that disappeared is noticed.
  answer.socket.setKeepAlive(true, 15_000);
  return answer;
}

async function* parse(answer: IncomingMessage): AsyncGenerator<EngineEvent> {
  for await (const line of linesOf(answer)) {
    const event = eventOf(line);
    if (event !== null) yield event;
  }
}

/** The lines of a stream. Throws if it was cut. */
export async function* linesOf(answer: IncomingMessage): AsyncGenerator<string> {
  let rest = '';
  answer.setEncoding('utf8');
  for await (const chunk of answer) {
    const lines = `${rest}${String(chunk)}`.split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
  }
  if (rest !== '') yield rest;
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

interface Watched {
  readonly wake: () => void;
  isReported: boolean;
}

const reconnectMs = 1_000;

/**
 * Reports when an execution may have ended, also if nobody reads its output. One stream of the engine's events serves all; whenever it
 * begins anew, all are woken.
 */
export class ExitNotices {
  readonly #engine: Engine;
  readonly #watched = new Map<string, Watched>();
  #isFollowing = false;

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  /** Calls `wake` now and then. Returns the function that ends it. */
  watch(exec: string, wake: () => void): () => void {
    this.#watched.set(exec, { wake, isReported: false });
    void this.#follow();
    return () => void this.#watched.delete(exec);
  }

  /** Did the engine report the end of this execution, which is watched? */
  isReported(exec: string): boolean {
    return this.#watched.get(exec)?.isReported ?? false;
  }

  async #follow(): Promise<void> {
    const { closed } = this.#engine;
    if (this.#isFollowing) return;
    this.#isFollowing = true;
    while (this.#watched.size > 0 && !closed.aborted) {
      // The events are only hints: whoever is woken looks for itself, and looks again when the stream begins anew.
      await this.#read().catch(() => {});
      await pause(reconnectMs, undefined, { signal: closed }).catch(() => {});
    }
    this.#isFollowing = false;
  }

  async #read(): Promise<void> {
    const { closed } = this.#engine;
    const stream = await openStream(this.#engine, ['exec_die'], closed);
    const end = (): void => void stream.destroy();
    closed.addEventListener('abort', end);
    try {
      for (const { wake } of this.#watched.values()) wake();
      for await (const line of linesOf(stream)) {
        const watched = this.#watched.get(/"execID":"([0-9a-f]+)"/.exec(line)?.[1] ?? '');
        if (watched === undefined) continue;
        watched.isReported = true;
        watched.wake();
      }
    } finally {
      closed.removeEventListener('abort', end);
      end();
    }
  }
}
