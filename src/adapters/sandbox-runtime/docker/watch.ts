import type { IncomingMessage } from 'node:http';
import type { ObservedSandbox } from '../../../domain/sandbox.ts';
import { type Engine, linesOf } from './engine.ts';
import { actions, type EngineEvent, followEvents, parseEvent } from './engine-events.ts';
import type { RunHistory } from './exit-causes.ts';
import { labels } from './labels.ts';
import { listContainers, stateOf } from './observed-sandbox.ts';

type State = ObservedSandbox['state'];

export interface WatchOptions {
  readonly engine: Engine;
  readonly runs: RunHistory;
  /** Called when something happened to a sandbox, before listeners are. */
  readonly onNews: (id: string) => void;
  /** How often the known states are compared with a list. */
  readonly compareMs: number;
}

/** A change of a sandbox that this runtime makes. What is seen of the sandbox meanwhile is no news, unless it leads elsewhere. */
export interface ExpectedChange {
  /** The engine will be asked to bring the sandbox to the last of these states, through those before it. No state: it is not asked. */
  expect(...states: readonly State[]): void;
  /** The change is over, with the state afterwards. Undefined if that is not known. */
  finish(observed: ObservedSandbox | undefined): void;
}

const results: Readonly<Record<EngineEvent['action'], State | null>> = {
  start: 'running',
  unpause: 'running',
  pause: 'frozen',
  die: 'stopped',
  destroy: 'absent',
  // A `die` follows.
  kill: null,
};

/** Calls listeners when something happened to a sandbox that nobody asked this runtime for. */
export class Watch {
  readonly #options: WatchOptions;
  readonly #listeners = new Set<{ readonly call: (id: string) => void }>();
  /** The last state of each sandbox that was seen, returned or brought about. */
  readonly #known = new Map<string, State>();
  readonly #changing = new Set<string>();
  readonly #expectations = new Expectations();
  #following: AbortController | undefined;
  /** Settles when the last connection to the events is closed. */
  #over: Promise<void> = Promise.resolve();

  constructor(options: WatchOptions) {
    this.#options = options;
  }

  /** Begins a change of a sandbox. There may be one at a time. */
  begin(id: string): ExpectedChange {
    this.#changing.add(id);
    let target: State | undefined;
    return {
      expect: (...states) => {
        target = states.at(-1);
        // What is asked for while nobody follows the events will not be in them.
        this.#expectations.expect(id, this.#following === undefined ? [] : states);
      },
      finish: (observed) => {
        this.#changing.delete(id);
        this.#keep(id, observed?.state);
        if (observed === undefined) return this.#expectations.forget(id);
        this.#expectations.done(id);
        if (target !== undefined && observed.state !== target) this.#wake(id);
      },
    };
  }

  /** This state was returned to somebody. */
  seen({ id, state }: ObservedSandbox): void {
    if (!this.#known.has(id) && !this.#changing.has(id)) this.#keep(id, state);
  }

  subscribe(call: (id: string) => void): () => void {
    const listener = { call };
    if (this.#options.engine.closed.aborted) return () => {};
    this.#listeners.add(listener);
    if (this.#following === undefined) {
      const { signal } = (this.#following = new AbortController());
      this.#over = this.#over.then(() =>
        followEvents(this.#options.engine, actions, signal, (stream) => this.#follow(stream)),
      );
    }
    return () => {
      if (this.#listeners.delete(listener) && this.#listeners.size === 0) this.#stopFollowing();
    };
  }

  async close(): Promise<void> {
    this.#listeners.clear();
    this.#stopFollowing();
    await this.#over;
  }

  #stopFollowing(): void {
    this.#following?.abort();
    this.#following = undefined;
  }

  #wake(id: string): void {
    this.#options.onNews(id);
    for (const listener of this.#listeners) callSafely(listener.call, id);
  }

  #keep(id: string, state: State | undefined): void {
    if (state === undefined || state === 'absent') this.#known.delete(id);
    else this.#known.set(id, state);
  }

  async #follow(stream: IncomingMessage): Promise<void> {
    const { runs, compareMs } = this.#options;
    // By the engine's clock, which shows whole seconds. NaN if the engine does not say.
    const openedAt = Date.parse(stream.headers.date ?? '');
    const comparing = setInterval(() => void this.#compare(openedAt).catch(() => stream.destroy()), compareMs);
    try {
      const reading = this.#read(linesOf(stream));
      reading.catch(() => {});
      await this.#compare(openedAt);
      await reading;
    } finally {
      clearInterval(comparing);
      stream.destroy();
      this.#expectations.clear();
      runs.lose();
    }
  }

  async #read(lines: AsyncIterable<string>): Promise<void> {
    for await (const line of lines) {
      const event = parseEvent(line);
      if (event === null) continue;
      this.#options.runs.note(event);
      const state = results[event.action];
      if (state === null) continue;
      this.#keep(event.id, state);
      if (!this.#expectations.meet(event.id, state)) this.#wake(event.id);
    }
  }

  /** Wakes for what changed while nobody followed the events. A sandbox that nobody has seen yet is no news. */
  async #compare(openedAt: number): Promise<void> {
    const before = new Map(this.#known);
    const containers = await listContainers(this.#options.engine);
    this.#options.runs.follow(containers, openedAt);
    const states = new Map(containers.map(({ State, Labels }) => [Labels[labels.sandbox] ?? '', stateOf(State, '')]));
    for (const [id, state] of states) if (this.#isNews(id, state, before)) this.#wake(id);
    for (const id of before.keys()) if (!states.has(id) && this.#isNews(id, 'absent', before)) this.#wake(id);
  }

  /** An event or a change that came meanwhile is newer than the list. */
  #isNews(id: string, state: State, before: ReadonlyMap<string, State>): boolean {
    const earlier = before.get(id);
    if (this.#changing.has(id) || this.#known.get(id) !== earlier) return false;
    this.#keep(id, state);
    return earlier !== undefined && earlier !== state;
  }
}

/** What happened has happened, whatever a listener does. Its error is a warning of the process. */
function callSafely(listener: (id: string) => void, id: string): void {
  try {
    listener(id);
  } catch (error) {
    process.emitWarning(error instanceof Error ? error : new Error(String(error)));
  }
}

/** How late the event of a change that is done may be. */
const lateMs = 10_000;

interface Expected {
  readonly state: State;
  readonly until: number;
}

/** What this runtime has asked the engine for, and the engine's events will report in this order. */
class Expectations {
  readonly #expected = new Map<string, readonly Expected[]>();

  /** The sandbox will be seen in these states, one after another. Some may be left out. Replaces those of a change that is not done. */
  expect(id: string, states: readonly State[]): void {
    const until = Number.POSITIVE_INFINITY;
    const late = this.#present(id).filter((one) => one.until !== until);
    this.#keep(id, [...late, ...states.map((state) => ({ state, until }))]);
  }

  /** The change that was expected is done. */
  done(id: string): void {
    const latest = performance.now() + lateMs;
    this.#keep(id, this.#present(id).map(({ state, until }) => ({ state, until: Math.min(until, latest) })));
  }

  /** The sandbox is seen so. Returns whether that was expected. */
  meet(id: string, state: State): boolean {
    const present = this.#present(id);
    const index = present.findIndex((one) => one.state === state);
    this.#keep(id, present.slice(index + 1));
    return index >= 0;
  }

  forget(id: string): void {
    this.#expected.delete(id);
  }

  clear(): void {
    this.#expected.clear();
  }

  #present(id: string): readonly Expected[] {
    return (this.#expected.get(id) ?? []).filter(({ until }) => until > performance.now());
  }

  #keep(id: string, list: readonly Expected[]): void {
    if (list.length === 0) this.#expected.delete(id);
    else this.#expected.set(id, list);
  }
}
