import type { IncomingMessage } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { z } from 'zod';
import type { ObservedSandbox } from '../../../domain/sandbox.ts';
import { Listeners } from '../../shared/listeners.ts';
import { type Engine, linesOf, parseJson, streamed } from './engine.ts';
import type { RunHistory } from './exit-causes.ts';
import { labels } from './labels.ts';
import { listContainers, stateOf } from './observed-sandbox.ts';

type State = ObservedSandbox['state'];

const actions = ['start', 'die', 'kill', 'pause', 'unpause', 'destroy', 'exec_die'] as const;

const EventMessage = z.object({
  Action: z.enum(actions),
  Actor: z.object({ ID: z.string(), Attributes: z.record(z.string(), z.string()) }),
});

/** The state that an event reports. Null if it reports none. */
const results: Readonly<Record<(typeof actions)[number], State | null>> = {
  start: 'running',
  unpause: 'running',
  pause: 'frozen',
  die: 'stopped',
  destroy: 'absent',
  // A `die` follows.
  kill: null,
  exec_die: null,
};

const firstPauseMs = 100;
const longestPauseMs = 5_000;

interface WatchedExecution {
  readonly wake: () => void;
  isReported: boolean;
}

/**
 * Follows the engine's events from the first use until the runtime is closed. Calls listeners when something happened to a sandbox that
 * nobody asked this runtime for, and wakes whoever waits for the end of an execution.
 */
export class Watch {
  readonly #engine: Engine;
  readonly #runs: RunHistory;
  /** How often the known states are compared with a list. */
  readonly #compareMs: number;
  /** Called whenever the events are followed anew: the engine may have been away. */
  readonly #onConnected: () => void;
  readonly #listeners = new Listeners<string>();
  /** The last state of each sandbox that was seen or brought about. */
  readonly #known = new Map<string, State>();
  /** The sandboxes that this runtime changes now, with the states that were seen meanwhile. */
  readonly #changing = new Map<string, State[]>();
  readonly #executions = new Map<string, WatchedExecution>();
  #following: Promise<void> | undefined;

  constructor(engine: Engine, runs: RunHistory, compareMs: number, onConnected: () => void) {
    this.#engine = engine;
    this.#runs = runs;
    this.#compareMs = compareMs;
    this.#onConnected = onConnected;
  }

  /**
   * Begins a change by which this runtime brings a sandbox to a state. There may be one at a time. Returns the function that ends it,
   * given the state afterwards; undefined if that is not known.
   */
  begin(id: string, target: State): (observed: ObservedSandbox | undefined) => void {
    const seen: State[] = [];
    this.#changing.set(id, seen);
    return (observed) => {
      this.#changing.delete(id);
      if (observed !== undefined) this.#known.set(id, observed.state);
      const isUnclear = observed === undefined && seen.length > 0;
      const endedByItself = target === 'running' && observed?.state === 'stopped';
      // What was seen up to the target belongs to the change.
      if (isUnclear || endedByItself || (seen.includes(target) && seen.at(-1) !== target)) this.#listeners.tell(id);
    };
  }

  subscribe(call: (id: string) => void): () => void {
    this.#following ??= this.#followAll();
    return this.#listeners.add(call);
  }

  /**
   * Calls `wake` when an execution may have ended, also if nobody reads its output. It is only a hint: whoever is woken looks for
   * itself. Returns the function that ends this.
   */
  watchExecution(exec: string, wake: () => void): () => void {
    this.#executions.set(exec, { wake, isReported: false });
    this.#following ??= this.#followAll();
    return () => void this.#executions.delete(exec);
  }

  /** Did the engine report the end of this execution, which is watched? */
  isEndReported(exec: string): boolean {
    return this.#executions.get(exec)?.isReported ?? false;
  }

  /** Settles when the connection to the events is closed, after that of the engine. */
  async closed(): Promise<void> {
    this.#listeners.clear();
    await this.#following;
  }

  /** Whenever a stream of events ends or fails, another one is opened after a pause. Never rejects. */
  async #followAll(): Promise<void> {
    const { closed: signal } = this.#engine;
    for (let pauseMs = firstPauseMs; !signal.aborted; pauseMs = Math.min(pauseMs * 2, longestPauseMs)) {
      const began = performance.now();
      await this.#follow(signal).catch(() => {});
      if (performance.now() - began > longestPauseMs) pauseMs = firstPauseMs;
      await pause(pauseMs, undefined, { signal }).catch(() => {});
    }
  }

  async #follow(signal: AbortSignal): Promise<void> {
    const { docker, deployment, call } = this.#engine;
    const filters = { type: ['container' as const], label: [`${labels.deployment}=${deployment}`], event: [...actions] };
    const stream = streamed(await call((abortSignal) => docker.getEvents({ filters, abortSignal }), { signal }), signal);
    this.#onConnected();
    // A host that disappeared is noticed.
    stream.socket.setKeepAlive(true, 15_000);
    // By the engine's clock, which shows whole seconds. NaN if the engine does not say.
    const openedAt = Date.parse(stream.headers.date ?? '');
    const comparing = setInterval(() => void this.#compare(openedAt).catch(() => stream.destroy()), this.#compareMs);
    try {
      const reading = this.#read(stream);
      reading.catch(() => {});
      for (const { wake } of this.#executions.values()) wake();
      await this.#compare(openedAt);
      await reading;
    } finally {
      clearInterval(comparing);
      stream.destroy();
      this.#runs.lose();
    }
  }

  async #read(stream: IncomingMessage): Promise<void> {
    for await (const line of linesOf(stream)) {
      const { Action: action, Actor } = parseJson(EventMessage, line) ?? {};
      const { [labels.sandbox]: id, execID, signal: sent } = Actor?.Attributes ?? {};
      if (action === undefined || Actor === undefined || id === undefined) continue;
      if (action === 'exec_die') this.#executionEnded(execID ?? '');
      else this.#runs.note(action, Actor.ID, sent);
      const state = results[action];
      if (state !== null) this.#happened(id, state);
    }
  }

  #executionEnded(exec: string): void {
    const watched = this.#executions.get(exec);
    if (watched === undefined) return;
    watched.isReported = true;
    watched.wake();
  }

  #happened(id: string, state: State): void {
    const seen = this.#changing.get(id);
    if (seen !== undefined) seen.push(state);
    else if (this.#known.get(id) !== state && this.#known.get(id) !== 'absent') {
      this.#known.set(id, state);
      this.#listeners.tell(id);
    }
  }

  /** Wakes for what changed while nobody followed the events. A sandbox that nobody has seen yet is no news. */
  async #compare(openedAt: number): Promise<void> {
    const before = new Map(this.#known);
    const containers = await listContainers(this.#engine);
    this.#runs.follow(containers, openedAt);
    const states = new Map(containers.map(({ State, Labels }) => [Labels[labels.sandbox] ?? '', stateOf(State, '')]));
    for (const id of new Set([...before.keys(), ...states.keys()])) {
      const earlier = before.get(id);
      const state = states.get(id) ?? 'absent';
      // An event or a change that came meanwhile is newer than the list.
      if (this.#changing.has(id) || this.#known.get(id) !== earlier) continue;
      if (state === 'absent') this.#known.delete(id);
      else this.#known.set(id, state);
      if (earlier !== undefined && earlier !== state) this.#listeners.tell(id);
    }
  }
}
