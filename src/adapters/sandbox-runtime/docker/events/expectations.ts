import type { State } from './watch.ts';

/** How late the word of what was done may be. */
const lateMs = 10_000;

interface Expected {
  readonly state: State;
  readonly until: number;
}

/** What this runtime has asked the engine for, and the engine's events will tell in their turn. */
export interface Expectations {
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

export function createExpectations(): Expectations {
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
