import { afterEach, beforeEach, expect, test } from 'vitest';
import { createManualClock, type ManualClock } from '../doubles/memory/index.ts';
import { BackOff, KeyedTimers } from '../../src/application/timers.ts';

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
