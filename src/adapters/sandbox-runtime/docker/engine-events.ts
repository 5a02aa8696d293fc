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

const firstPauseMs = 100;
const longestPauseMs = 5_000;

/**
 * Follows what happens to the deployment's containers until the signal fires. `read` gets each stream, whose lines are events; when that
 * ends or fails, another stream is opened after a pause. Never rejects.
 */
export async function followEvents(
  engine: Engine, event: readonly string[], signal: AbortSignal, read: (stream: IncomingMessage) => Promise<void>,
): Promise<void> {
  for (let pauseMs = firstPauseMs; !signal.aborted; pauseMs = Math.min(pauseMs * 2, longestPauseMs)) {
    const began = performance.now();
    await openEvents(engine, event, signal).then(read).catch(() => {});
    if (performance.now() - began > longestPauseMs) pauseMs = firstPauseMs;
    await pause(pauseMs, undefined, { signal }).catch(() => {});
  }
}

async function openEvents({ docker, deployment, call }: Engine, event: readonly string[], signal: AbortSignal): Promise<IncomingMessage> {
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

/**
 * Reports when an execution may have ended, also if nobody reads its output. One stream of the engine's events serves all; whenever it
 * begins again, all are woken.
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
    if (!this.#isFollowing) void followEvents(this.#engine, ['exec_die'], this.#engine.closed, (stream) => this.#read(stream));
    this.#isFollowing = true;
    return () => void this.#watched.delete(exec);
  }

  /** Did the engine report the end of this execution, which is watched? */
  isReported(exec: string): boolean {
    return this.#watched.get(exec)?.isReported ?? false;
  }

  /** The events are only hints: whoever is woken looks for itself. */
  async #read(stream: IncomingMessage): Promise<void> {
    for (const { wake } of this.#watched.values()) wake();
    for await (const line of linesOf(stream)) {
      const watched = this.#watched.get(/"execID":"([0-9a-f]+)"/.exec(line)?.[1] ?? '');
      if (watched === undefined) continue;
      watched.isReported = true;
      watched.wake();
    }
  }
}
