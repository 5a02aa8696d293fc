import type { IncomingMessage } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import type { ObservedSandbox, ObservedState } from '../../../domain/sandbox.ts';
import { parseJson } from '../../shared/json.ts';
import { Listeners } from '../../shared/listeners.ts';
import { type Engine, linesOf, streamed } from './engine.ts';
import type { RunEvents } from './exit-causes.ts';
import { labels } from './labels.ts';
import { listContainers, stateOf } from './observed-sandbox.ts';

/** The new state after an event. Null if the event changes none. */
const results: Readonly<Record<string, ObservedState | null>> = {
  start: 'running',
  unpause: 'running',
  pause: 'frozen',
  die: 'stopped',
  destroy: 'absent',
  // A `die` follows if the container ends.
  kill: null,
  oom: null,
  exec_die: null,
};

const EventMessage = z.object({
  Action: z.string(),
  Actor: z.object({ ID: z.string(), Attributes: z.record(z.string(), z.string()) }),
});

const firstPauseMs = 100;
const longestPauseMs = 5_000;
/** How often the known states are compared with a list, in addition to the engine's events. */
const compareMs = 60_000;
/**
 * How long after the first list it is repeated. The engine lists a container as running until its file systems are unmounted, so the list
 * may miss an end whose event came before the stream.
 */
const repeatListMs = 5_000;

/** How long after an `unpause` the engine may repeat the `pause` before it. */
const repeatedMs = 2_000;

/** The last known state of a sandbox, seen or set by this runtime. */
interface Known {
  readonly state: ObservedState;
  /** When this runtime thawed it, in milliseconds of this process. -Infinity if that was not the last change. */
  readonly thawedAt: number;
}

/**
 * Returns whether the engine may have repeated a pause that is over. containerd reports each pause to the engine too. If that is late, the
 * engine takes it for a new one: it reports `pause` and `unpause` once more, and the state `paused` between them (Docker 20.10 and later).
 * A pause by a person that is taken for such a repetition is noticed when the sandboxes are listed.
 */
function isRepeatedPause({ thawedAt }: Known, event: ObservedState): boolean {
  return event === 'frozen' && performance.now() - thawedAt < repeatedMs;
}

function isChange(known: Known, event: ObservedState): boolean {
  return known.state !== event && !isRepeatedPause(known, event);
}

/**
 * Follows the engine's events from the first use until the runtime is closed. Calls the listeners if a sandbox is in another state than the
 * last known one, or its end has another cause than was known. Wakes callers that wait for the end of an execution. The events of this
 * runtime's own steps mostly show the known state. If such an event comes late, after a further step, the listeners are called without
 * need.
 */
export class SandboxWatch {
  readonly #engine: Engine;
  readonly #runEvents: RunEvents;
  /** Called each time that the event stream is connected: the engine may have restarted. */
  readonly #onConnected: () => void;
  readonly #listeners = new Listeners<string>();
  /** A new object after each change and step. */
  readonly #known = new Map<string, Known>();
  /** The sandboxes in which a step of this runtime runs, with the last state that an event reported during it. Null before the first. */
  readonly #steps = new Map<string, ObservedState | null>();
  readonly #executions = new Map<string, (isReported: boolean) => void>();
  #following: Promise<void> | undefined;

  constructor(engine: Engine, runEvents: RunEvents, onConnected: () => void) {
    this.#engine = engine;
    this.#runEvents = runEvents;
    this.#onConnected = onConnected;
  }

  /**
   * Called before a step that leads a sandbox to the target state, one step at a time. Returns a function to call afterwards with the new
   * state, or undefined if the step failed.
   */
  begin(id: string, target: ObservedState): (observed: ObservedSandbox | undefined) => void {
    this.#steps.set(id, null);
    return (observed) => {
      const seen = this.#steps.get(id) ?? null;
      this.#steps.delete(id);
      const state = observed?.state ?? seen;
      if (state === null) return;
      const isThawed = this.#known.get(id)?.state === 'frozen' && state === 'running';
      const known = { state, thawedAt: isThawed ? performance.now() : -Infinity };
      this.#known.set(id, known);
      const endedByItself = target === 'running' && state === 'stopped';
      // Nothing happens to a removed sandbox, so what was seen came before.
      const isChangedSince = seen !== null && state !== 'absent' && isChange(known, seen);
      if (observed === undefined || endedByItself || isChangedSince) this.#listeners.notify(id);
    };
  }

  /** Returns whether a pause that the engine reports now may be an earlier one that is over. */
  mayRepeatPause(id: string): boolean {
    const known = this.#known.get(id);
    return known !== undefined && isRepeatedPause(known, 'frozen');
  }

  subscribe(call: (id: string) => void): () => void {
    this.#following ??= this.#followAll();
    return this.#listeners.add(call);
  }

  /**
   * Calls `wake` when an execution may have ended, also if nobody reads its output: with true if the engine reported the end. Otherwise it
   * is only a hint, which the callback must check. Returns a function that stops this.
   */
  watchExecution(exec: string, wake: (isReported: boolean) => void): () => void {
    this.#executions.set(exec, wake);
    this.#following ??= this.#followAll();
    return () => void this.#executions.delete(exec);
  }

  /** Resolves when the event stream has ended. The engine's `closed` signal must fire first. */
  async closed(): Promise<void> {
    this.#listeners.clear();
    await this.#following;
  }

  /** Opens a new event stream, after a pause, whenever the last one ends or fails. Never rejects. */
  async #followAll(): Promise<void> {
    const { closed: signal } = this.#engine;
    for (let pauseMs = firstPauseMs; !signal.aborted; pauseMs = Math.min(pauseMs * 2, longestPauseMs)) {
      const began = performance.now();
      await this.#follow(signal).catch(() => {});
      if (performance.now() - began > longestPauseMs) pauseMs = firstPauseMs;
      await sleep(pauseMs, undefined, { signal }).catch(() => {});
    }
  }

  async #follow(signal: AbortSignal): Promise<void> {
    const { docker, deployment, call } = this.#engine;
    const filters = { type: ['container' as const], label: [`${labels.deployment}=${deployment}`], event: Object.keys(results) };
    const stream = streamed(await call((abortSignal) => docker.getEvents({ filters, abortSignal }), { signal }), signal);
    this.#onConnected();
    // Detects a lost host.
    stream.socket.setKeepAlive(true, 15_000);
    // The engine's clock, in whole seconds. NaN if the response has no date.
    const openedAt = Date.parse(stream.headers.date ?? '');
    const compare = (): void => void this.#compare(openedAt).catch(() => stream.destroy());
    const timers = [setInterval(compare, compareMs)];
    try {
      const reading = this.#read(stream);
      reading.catch(() => {});
      for (const wake of this.#executions.values()) wake(false);
      await this.#compare(openedAt);
      timers.push(setTimeout(compare, repeatListMs));
      await reading;
    } finally {
      for (const timer of timers) clearTimeout(timer);
      stream.destroy();
      this.#runEvents.lose();
    }
  }

  async #read(stream: IncomingMessage): Promise<void> {
    for await (const line of linesOf(stream)) {
      const { Action: action = '', Actor } = parseJson(EventMessage, line) ?? {};
      const { [labels.sandbox]: id, execID, signal: sent } = Actor?.Attributes ?? {};
      const state = results[action];
      if (state === undefined || Actor === undefined || id === undefined) continue;
      if (action === 'exec_die') this.#executions.get(execID ?? '')?.(true);
      else if (this.#runEvents.note(action, Actor.ID, sent)) this.#listeners.notify(id);
      if (state !== null) this.#happened(id, state);
    }
  }

  #happened(id: string, state: ObservedState): void {
    if (this.#steps.has(id)) {
      this.#steps.set(id, state);
      return;
    }
    const known = this.#known.get(id);
    if (known !== undefined && !isChange(known, state)) return;
    this.#known.set(id, { state, thawedAt: -Infinity });
    this.#listeners.notify(id);
  }

  /** Calls the listeners for changes that the events did not report. A sandbox seen for the first time is no change. */
  async #compare(openedAt: number): Promise<void> {
    const before = new Map(this.#known);
    const containers = await listContainers(this.#engine);
    this.#runEvents.follow(containers, openedAt);
    const states = new Map(containers.map(({ State, Labels }) => [Labels[labels.sandbox] ?? '', stateOf({ Status: State })]));
    for (const id of new Set([...before.keys(), ...states.keys()])) {
      const earlier = before.get(id);
      const state = states.get(id) ?? 'absent';
      // A later event or step is newer than the list.
      if (this.#steps.has(id) || this.#known.get(id) !== earlier) continue;
      if (state === 'absent') this.#known.delete(id);
      else if (state !== earlier?.state) this.#known.set(id, { state, thawedAt: -Infinity });
      if (earlier !== undefined && earlier.state !== state) this.#listeners.notify(id);
    }
  }
}
