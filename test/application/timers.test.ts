import { expect, test } from 'vitest';
import { createManualClock } from '../doubles/memory/index.ts';
import { BackOff } from '../../src/application/timers.ts';

test('the delay after a failure ends at its time, also if the time of the machine is set back meanwhile', () => {
  const clock = createManualClock(0);
  const backOff = new BackOff(clock);
  for (let failures = 0; failures < 3; failures += 1) backOff.failed('key');
  clock.advance(1000);
  expect(backOff.waitMs('key')).toBe(3000);
  clock.jump(-3_600_000);
  expect(backOff.waitMs('key')).toBe(0);
});
