import type { IncomingMessage } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { z } from 'zod';
import { type Engine, linesOf, parseJson, streamed } from './engine.ts';
import { labels } from './labels.ts';

export const actions = ['start', 'die', 'kill', 'pause', 'unpause', 'destroy'] as const;

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

/** Follows what happens to the deployment's containers from now on, until the signal fires. Each line is an event. Rejects as calls do. */
export async function openEvents(engine: Engine, event: readonly string[], signal: AbortSignal): Promise<IncomingMessage> {
  const { docker, deployment, call } = engine;
  const filters = { type: ['container' as const], label: [`${labels.deployment}=${deployment}`], event: [...event] };
  const answer = streamed(await call((abortSignal) => docker.getEvents({ filters, abortSignal }), { signal }), signal);
  // A host that disappeared is noticed.
  answer.socket.setKeepAlive(true, 15_000);
  return answer;
}

/** Returns null if the line is no event of a sandbox. */
export function parseEvent(line: string): EngineEvent | null {
  const { Action: action, Actor } = parseJson(Message, line) ?? {};
  const id = Actor?.Attributes[labels.sandbox];
  if (action === undefined || Actor === undefined || id === undefined) return null;
  return { action, id, containerId: Actor.ID, signal: Actor.Attributes['signal'] ?? null };
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
      await this.#read(closed).catch(() => {});
      await pause(reconnectMs, undefined, { signal: closed }).catch(() => {});
    }
    this.#isFollowing = false;
  }

  async #read(signal: AbortSignal): Promise<void> {
    const stream = await openEvents(this.#engine, ['exec_die'], signal);
    for (const { wake } of this.#watched.values()) wake();
    for await (const line of linesOf(stream)) {
      const watched = this.#watched.get(/"execID":"([0-9a-f]+)"/.exec(line)?.[1] ?? '');
      if (watched === undefined) continue;
      watched.isReported = true;
      watched.wake();
    }
  }
}
