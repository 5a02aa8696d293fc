import type Docker from 'dockerode';
import type { ObservedSandbox } from '../../../domain/sandbox.ts';
import { pause, raceSignal, realTimers } from '../../shared/timeout.ts';
import { type EngineEvent, openStream } from './engine-events.ts';
import type { Connection } from './engine.ts';
import type { Runs } from './exit-causes.ts';
import { labels } from './labels.ts';
import { stateOf } from './observed-sandbox.ts';

type State = ObservedSandbox['state'];

interface WatchOptions {
  readonly connection: Connection;
  readonly runs: Runs;
  readonly list: () => Promise<readonly Docker.ContainerInfo[]>;
  /** Told of what happened to a sandbox before listeners are woken for it. */
  readonly news: (id: string) => void;
  /** How often what was told is compared with what is. */
  readonly compareMs: number;
}

/** A move of a sandbox that this runtime makes: what is seen of it meanwhile is no news, unless it leads elsewhere. */
export interface Move {
  /**
   * It is about to ask the engine to bring the sandbox to the last of these states, through those before it; to none where it
   * asks for nothing after all.
   */
  aim(...states: readonly State[]): void;
  /** It is over, with the fact that holds now; null where that is not known. */
  end(fact: ObservedSandbox | null): void;
}

/** Tells listeners when something happened to a sandbox that nobody asked this runtime for. */
interface Watch {
  /** One at a time for one sandbox. */
  move(id: string): Move;
  /** Somebody was told so. */
  told(fact: ObservedSandbox): void;
  readonly subscribe: (listener: (id: string) => void) => () => void;
  close(): Promise<void>;
}

const results: Readonly<Record<EngineEvent['action'], State | null>> = {
  start: 'running',
  unpause: 'running',
  pause: 'frozen',
  die: 'stopped',
  destroy: 'absent',
  // The `die` that follows tells.
  kill: null,
};

const firstPauseMs = 100;
const longestPauseMs = 5_000;

export function createWatch({ connection, runs, list, news, compareMs }: WatchOptions): Watch {
  const listeners = new Set<{ readonly call: (id: string) => void }>();
  /** What each sandbox was last seen, told or brought to be. */
  const known = new Map<string, State>();
  const moving = new Set<string>();
  const expectations = createExpectations();
  let following: AbortController | undefined;
  /** When whoever followed last is done with it. */
  let over: Promise<void> = Promise.resolve();

  const wake = (id: string): void => {
    news(id);
    for (const listener of listeners) callSafely(listener.call, id);
  };
  const keep = (id: string, state: State | undefined): void => {
    if (state === undefined || state === 'absent') known.delete(id);
    else known.set(id, state);
  };

  /** Wakes for what changed while nobody looked. What nobody was told of is no news. */
  async function compare(openedAt: number | undefined): Promise<void> {
    const before = new Map(known);
    const containers = await list();
    runs.follow(containers, openedAt);
    const states = new Map(containers.map(({ State, Labels }) => [Labels[labels.sandbox] ?? '', stateOf(State, '')]));
    for (const [id, state] of states) if (isNews(id, state, before)) wake(id);
    for (const id of before.keys()) if (!states.has(id) && isNews(id, 'absent', before)) wake(id);
  }

  /** An event, or a move, that came meanwhile knows better than a list. */
  function isNews(id: string, state: State, before: ReadonlyMap<string, State>): boolean {
    const earlier = before.get(id);
    if (moving.has(id) || known.get(id) !== earlier) return false;
    keep(id, state);
    return earlier !== undefined && earlier !== state;
  }

  async function follow(signal: AbortSignal, succeeded: () => void): Promise<void> {
    const stream = await openStream(connection, signal);
    const close = (): void => stream.close();
    signal.addEventListener('abort', close);
    const compareAgain = setInterval(() => void compare(stream.openedAt).catch(close), compareMs);
    try {
      signal.throwIfAborted();
      const reading = read(stream.events);
      reading.catch(() => {});
      await compare(stream.openedAt);
      succeeded();
      await raceSignal(reading, signal);
    } finally {
      clearInterval(compareAgain);
      signal.removeEventListener('abort', close);
      close();
      expectations.clear();
      runs.lose();
    }
  }

  async function read(events: AsyncIterable<EngineEvent>): Promise<void> {
    for await (const event of events) {
      runs.note(event);
      const state = results[event.action];
      if (state === null) continue;
      keep(event.id, state);
      if (!expectations.meet(event.id, state)) wake(event.id);
    }
  }

  async function keepFollowing(signal: AbortSignal): Promise<void> {
    let pauseMs = firstPauseMs;
    while (!signal.aborted) {
      await follow(signal, () => (pauseMs = firstPauseMs)).catch(() => {});
      await pause(realTimers, pauseMs, signal).catch(() => {});
      pauseMs = Math.min(pauseMs * 2, longestPauseMs);
    }
  }

  return {
    move(id) {
      moving.add(id);
      let target: State | undefined;
      return {
        aim(...states) {
          target = states.at(-1);
          expectations.withdraw(id);
          // Of what is asked for while nobody follows, no event will tell.
          if (following !== undefined) expectations.expect(id, states);
        },
        end(fact) {
          moving.delete(id);
          keep(id, fact?.state);
          if (fact === null) return expectations.forget(id);
          expectations.done(id);
          if (target !== undefined && fact.state !== target) wake(id);
        },
      };
    },
    told({ id, state }) {
      if (!known.has(id) && !moving.has(id)) keep(id, state);
    },
    subscribe(call) {
      const listener = { call };
      if (connection.closed.aborted) return () => {};
      listeners.add(listener);
      if (following === undefined) {
        const { signal } = (following = new AbortController());
        over = over.then(() => keepFollowing(signal));
      }
      return () => {
        if (!listeners.delete(listener) || listeners.size > 0) return;
        following?.abort();
        following = undefined;
      };
    },
    async close() {
      listeners.clear();
      following?.abort();
      following = undefined;
      await over;
    },
  };
}

/** What happened has happened, whatever a listener does: its error is a warning of the process. */
function callSafely(listener: (id: string) => void, id: string): void {
  try {
    listener(id);
  } catch (error) {
    process.emitWarning(error instanceof Error ? error : new Error(String(error)));
  }
}

/** How late the word of what was done may be. */
const lateMs = 10_000;

interface Expected {
  readonly state: State;
  readonly until: number;
}

/** What this runtime has asked the engine for, and the engine's events will tell in their turn. */
interface Expectations {
  /** The sandbox will be seen in these states, one after another; some may be left out. */
  expect(id: string, states: readonly State[]): void;
  /** What was to be asked for last is not. */
  withdraw(id: string): void;
  /** What was asked for is done. */
  done(id: string): void;
  /** It is seen so. Answers with whether that was to be expected. */
  meet(id: string, state: State): boolean;
  forget(id: string): void;
  clear(): void;
}

function createExpectations(): Expectations {
  const expected = new Map<string, readonly Expected[]>();
  const still = (id: string): readonly Expected[] => (expected.get(id) ?? []).filter(({ until }) => until > performance.now());
  const keep = (id: string, list: readonly Expected[]): void => {
    if (list.length === 0) expected.delete(id);
    else expected.set(id, list);
  };
  return {
    expect(id, states) {
      keep(id, [...still(id), ...states.map((state) => ({ state, until: Number.POSITIVE_INFINITY }))]);
    },
    withdraw: (id) => keep(id, still(id).filter(({ until }) => until !== Number.POSITIVE_INFINITY)),
    done(id) {
      const latest = performance.now() + lateMs;
      keep(id, still(id).map(({ state, until }) => ({ state, until: Math.min(until, latest) })));
    },
    meet(id, state) {
      const list = still(id);
      const index = list.findIndex((one) => one.state === state);
      keep(id, list.slice(index + 1));
      return index >= 0;
    },
    forget: (id) => void expected.delete(id),
    clear: () => expected.clear(),
  };
}
