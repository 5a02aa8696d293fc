import { setTimeout as pause } from 'node:timers/promises';
import { inspect } from 'node:util';
import { expect } from 'vitest';

/** After so long a wait says what it waits for. */
const quietMs = 5_000;

/**
 * Asks again and again until the answer is what is wanted, and returns it. The pause between two questions keeps the machine
 * free; it decides nothing. Says what it waits for if that takes more than a few seconds; throws, with the last answer, when
 * `withinMs` have passed.
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
