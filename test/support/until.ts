import { setTimeout as pause } from 'node:timers/promises';
import { inspect } from 'node:util';
import { expect } from 'vitest';

/** A longer wait prints a warning. */
const quietMs = 5_000;

/**
 * Calls `ask` until `wanted` returns true for the answer, and returns that answer. The pause between two calls only saves CPU time.
 * Prints a warning after a few seconds. Throws, with the last answer, after `withinMs` milliseconds.
 */
export async function until<T>(ask: () => T | Promise<T>, wanted: (answer: T) => boolean, withinMs = 60_000): Promise<T> {
  const start = performance.now();
  let said = false;
  for (;;) {
    const answer = await ask();
    if (wanted(answer)) return answer;
    const waited = performance.now() - start;
    if (waited > withinMs) throw new Error(`not within ${withinMs} ms: ${String(wanted)}; last: ${inspect(answer)}`);
    if (waited > quietMs && !said) {
      said = true;
      console.warn(`${expect.getState().currentTestName ?? 'a hook'} waits for ${String(wanted)}; last: ${inspect(answer)}`);
    }
    await pause(20);
  }
}
