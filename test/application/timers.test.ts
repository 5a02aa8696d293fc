import { afterEach, beforeEach, expect, test } from 'vitest';
import { createManualClock, type ManualClock } from '../doubles/memory/index.ts';
import { KeyedTimers } from '../../src/application/timers.ts';

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

test('rings once for each key at its time', () => {
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

test('the newest time of a key is the one that counts, sooner or later than before, or never', () => {
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

test('what is due already does not ring: it would ring for ever where nothing can be done', () => {
  clock.advance(1000);
  alarms.set('a', 1000);
  alarms.set('b', 1);
  expect(clock.pending).toBe(0);
});

test('what is due in weeks sets no timer, which could not hold as much: a sweep finds it when it is near', () => {
  alarms.set('a', 30 * 24 * hour);
  expect(clock.pending).toBe(0);
  clock.advance(30 * 24 * hour - 1000);
  alarms.set('a', 30 * 24 * hour);
  clock.advance(1000);
  expect(rung).toEqual(['a']);
});

test('a close leaves no timer, and none is set afterwards', () => {
  alarms.set('a', 1000);
  alarms.close();
  alarms.set('b', 1000);
  expect(clock.pending).toBe(0);
});
