import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createManualClock, type ManualClock } from '../doubles/memory/index.ts';
import { Failure } from '../../src/domain/failure.ts';
import { BackOff, KeyedTimers, retryThroughStoreOutage } from '../../src/application/timers.ts';
import { neverAborts } from '../../src/ports/abort-signals.ts';

const hour = 3_600_000;
let clock: ManualClock;
let rung: string[];
let alarms: KeyedTimers;

beforeEach(() => {
  clock = createManualClock(0);
  rung = [];
  alarms = new KeyedTimers(clock, (key) => rung.push(key));
});

afterEach(() => alarms.close());

test('a timer calls back once for each key at its time', () => {
  alarms.set('a', 1000);
  alarms.set('b', 2000);
  alarms.set('a', 1000);
  clock.advance(999);
  expect(rung).toEqual([]);
  clock.advance(1);
  expect(rung).toEqual(['a']);
  clock.advance(hour);
  expect(rung).toEqual(['a', 'b']);
});

test('a new time of a key replaces the old one, and null cancels it', () => {
  for (const at of [1000, 500]) alarms.set('sooner', at);
  for (const at of [1000, 1500]) alarms.set('later', at);
  for (const at of [1000, null]) alarms.set('never', at);
  clock.advance(500);
  expect(rung).toEqual(['sooner']);
  clock.advance(500);
  expect(rung).toEqual(['sooner']);
  clock.advance(500);
  expect(rung).toEqual(['sooner', 'later']);
  expect(clock.pending).toBe(0);
});

test('a time that is not in the future sets no timer', () => {
  clock.advance(1000);
  alarms.set('a', 1000);
  alarms.set('b', 1);
  expect(clock.pending).toBe(0);
});

test('a time that is weeks ahead sets no timer until it is set again when it is near', () => {
  alarms.set('a', 30 * 24 * hour);
  expect(clock.pending).toBe(0);
  clock.advance(30 * 24 * hour - 1000);
  alarms.set('a', 30 * 24 * hour);
  clock.advance(1000);
  expect(rung).toEqual(['a']);
});

test('close cancels all timers, and no timer is set after it', () => {
  alarms.set('a', 1000);
  alarms.close();
  alarms.set('b', 1000);
  expect(clock.pending).toBe(0);
});

test('the delay after a failure ends at its time, also if the time of the machine is set back meanwhile', () => {
  const backOff = new BackOff(clock);
  for (let failures = 0; failures < 3; failures += 1) backOff.failed('key');
  clock.advance(1000);
  expect(backOff.waitMs('key')).toBe(3000);
  clock.jump(-3_600_000);
  expect(backOff.waitMs('key')).toBe(0);
});

interface Outage {
  readonly tries: number[];
  readonly counts: number[];
  failWith: Error | null;
  /** A try waits for it. */
  hold: Promise<void> | null;
}

/** Begins work that fails until `failWith` is null, and returns when it was tried, in milliseconds. */
function begin(signal = neverAborts) {
  const outage: Outage = { tries: [], counts: [], failWith: new Failure('store_unavailable', { reason: { code: 'locked' }, retryAfterSeconds: 1 }), hold: null };
  const work = async (failures: number): Promise<string> => {
    outage.tries.push(clock.now());
    outage.counts.push(failures);
    await outage.hold;
    if (outage.failWith !== null) throw outage.failWith;
    return 'done';
  };
  const result = retryThroughStoreOutage(clock, signal, work).catch((error: unknown) => error);
  return { outage, result };
}

async function pass(ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 500) {
    await settle();
    clock.advance(500);
  }
  await settle();
}

const settle = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

describe('work during an outage of the store', () => {
  test('is repeated after longer and longer pauses, with the number of failures, until it succeeds', async () => {
    const { outage, result } = begin();
    await pass(16_500);
    expect(outage.tries).toEqual([0, 1000, 3000, 7000, 12_000]);
    expect(outage.counts).toEqual([0, 1, 2, 3, 4]);
    outage.failWith = null;
    await pass(500);
    expect(await result).toBe('done');
    expect(clock.pending).toBe(0);
  });

  test('is given up after two minutes, also if the time of the machine is set back meanwhile', async () => {
    const { outage, result } = begin();
    await pass(60_000);
    clock.jump(-hour);
    await pass(62_000);
    expect(await result).toBe(outage.failWith);
    expect(clock.pending).toBe(0);
  });

  test('is not repeated after another failure', async () => {
    const { outage, result } = begin();
    await pass(500);
    outage.failWith = new Failure('sandbox_not_found', { id: 'one' });
    await pass(1000);
    expect(await result).toBe(outage.failWith);
    expect(outage.tries).toEqual([0, 1000]);
  });

  test('is tried at once when the signal fires in a pause, and then every half second for five seconds', async () => {
    const ending = new AbortController();
    const { outage, result } = begin(ending.signal);
    await pass(8000);
    ending.abort();
    await pass(6000);
    expect(await result).toBe(outage.failWith);
    expect(outage.tries.slice(4)).toEqual(Array.from({ length: 11 }, (_, index) => 8000 + index * 500));
    expect(clock.pending).toBe(0);
  });

  test('is given up if a try that was running at the signal fails more than five seconds later', async () => {
    const ending = new AbortController();
    const held = Promise.withResolvers<void>();
    const { outage, result } = begin(ending.signal);
    outage.hold = held.promise;
    await pass(1000);
    ending.abort();
    await pass(5000);
    held.resolve();
    expect(await result).toBe(outage.failWith);
    expect(outage.tries).toEqual([0, 1000]);
  });

  test('is repeated for five seconds if the signal has fired before', async () => {
    const { outage, result } = begin(AbortSignal.abort());
    await pass(6000);
    expect(await result).toBe(outage.failWith);
    expect(outage.tries).toEqual(Array.from({ length: 11 }, (_, index) => index * 500));
  });
});
