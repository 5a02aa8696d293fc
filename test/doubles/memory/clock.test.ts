import { describe, expect, test } from 'vitest';
import { createManualClock, createSeededRandom } from './index.ts';
import { clockContract } from '../../contracts/clock.ts';
import { randomContract } from '../../contracts/random.ts';

describe('Manual clock', () => {
  const suite = clockContract(() => {
    const clock = createManualClock();
    return { clock, pass: async (ms) => clock.advance(ms) };
  });
  for (const { name, run } of suite) test(name, run);

  test('stands still until the test advances it', () => {
    const clock = createManualClock(1000);
    expect(clock.now()).toBe(1000);
    clock.advance(5);
    expect(clock.now()).toBe(1005);
  });

  test('keeps the delay of a timer when the time jumps', () => {
    const clock = createManualClock(0);
    const called: number[] = [];
    clock.after(10, () => called.push(clock.now()));
    clock.jump(1000);
    clock.advance(9);
    expect(called).toEqual([]);
    clock.advance(1);
    expect(called).toEqual([1010]);
  });

  test('calls each timer at its own time, also one that another timer sets', () => {
    const clock = createManualClock(0);
    const called: [string, number][] = [];
    clock.after(30, () => called.push(['c', clock.now()]));
    clock.after(10, () => {
      called.push(['a', clock.now()]);
      clock.after(10, () => called.push(['b', clock.now()]));
    });
    clock.after(31, () => called.push(['too late', clock.now()]));
    clock.advance(30);
    expect(called).toEqual([['a', 10], ['b', 20], ['c', 30]]);
    expect(clock.pending).toBe(1);
  });
});

describe('Seeded random', () => {
  for (const { name, run } of randomContract(() => createSeededRandom(7))) test(name, run);

  test('returns the same values for the same seed, and others for another seed', () => {
    expect(ids(1)).toEqual(ids(1));
    expect(ids(1)).not.toEqual(ids(2));
  });
});

function ids(seed: number): string[] {
  const random = createSeededRandom(seed);
  return [random.id('a'), random.secret(), random.id('b')];
}
