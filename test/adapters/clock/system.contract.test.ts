import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { createSystemClock } from '../../../src/adapters/clock/system-clock.ts';
import { createSystemRandom } from '../../../src/adapters/random/system-random.ts';
import { realTimers } from '../../../src/adapters/shared/timeout.ts';
import { clockContract } from '../../contracts/clock.ts';
import { randomContract } from '../../contracts/random.ts';

const systemClock = createSystemClock();

describe.each([
  ['System clock', systemClock],
  ['System clock with the timers of adapters', { ...systemClock, ...realTimers }],
])('%s', (_, clock) => {
  const suite = clockContract(() => ({ clock, pass: (ms) => new Promise((resolve) => setTimeout(resolve, ms)) }));
  for (const { name, run } of suite) test(name, run);
});

test('the system clock does not keep the process alive', async () => {
  const module = new URL('../../../src/adapters/clock/system-clock.ts', import.meta.url).href;
  const program = `
    const { createSystemClock } = await import(${JSON.stringify(module)});
    createSystemClock().after(3_600_000, () => {});
    process.on('exit', () => console.log('ended'));
  `;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program], { timeout: 20_000 });
  expect(stdout).toBe('ended\n');
});

describe('System random', () => {
  for (const { name, run } of randomContract(createSystemRandom)) test(name, run);

  test('creates ids of 128 bits in base 32', () => {
    expect(createSystemRandom().id('sandbox')).toMatch(/^sandbox-[a-z2-7]{26}$/);
  });
});
