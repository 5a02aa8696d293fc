import { deepEqual, equal, ok } from 'node:assert/strict';
import type { Clock } from '../../src/ports/clock.ts';
import type { ContractCase } from './contract.ts';

export interface OpenClock {
  readonly clock: Clock;
  /** Lets at least `ms` milliseconds pass. */
  readonly pass: (ms: number) => Promise<void>;
}

/** The contract of every `Clock`. */
export function clockContract(open: () => OpenClock): ContractCase[] {
  return [
    {
      name: 'returns the milliseconds since the epoch, and they increase',
      run: async () => {
        const { clock, pass } = open();
        const before = clock.now();
        ok(Number.isInteger(before) && before > Date.UTC(2020, 0, 1));
        await pass(5);
        ok(clock.now() > before);
      },
    },
    {
      name: 'calls each callback once, in the order of their times',
      run: async () => {
        const { clock, pass } = open();
        const called: string[] = [];
        clock.after(20, () => called.push('late'));
        clock.after(10, () => called.push('early'));
        clock.after(0, () => called.push('at once'));
        deepEqual(called, []);
        await pass(40);
        deepEqual(called, ['at once', 'early', 'late']);
      },
    },
    {
      name: 'does not call a cancelled callback, and ignores a second cancel',
      run: async () => {
        const { clock, pass } = open();
        let calls = 0;
        const cancel = clock.after(5, () => (calls += 1));
        cancel();
        cancel();
        const late = clock.after(1, () => (calls += 10));
        await pass(20);
        late();
        equal(calls, 10);
      },
    },
    {
      name: 'supports delays longer than the maximum of setTimeout',
      run: async () => {
        const { clock, pass } = open();
        const called: string[] = [];
        const cancels = [2 ** 31, 2 ** 40, Number.MAX_SAFE_INTEGER].map((ms) => clock.after(ms, () => called.push(String(ms))));
        await pass(20);
        deepEqual(called, []);
        for (const cancel of cancels) cancel();
      },
    },
  ];
}
