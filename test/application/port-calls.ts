import { setImmediate as nextTurn } from 'node:timers/promises';

let calls = 0;

/** Counts a call on a port by a process of the test. */
export function noteCall(): void {
  calls += 1;
}

/**
 * Waits until nothing is left to run: one iteration of the event loop passes without a call on a port. The ports of these
 * tests answer within one iteration, and all longer work of Skep calls a port.
 */
export async function calm(): Promise<void> {
  for (let seen = -1; seen !== calls; ) {
    seen = calls;
    await nextTurn();
  }
}

/** Lets seconds pass, one after the other, with all work that each makes due. */
export async function passSeconds(clock: { advance(ms: number): void }, seconds: number): Promise<void> {
  for (let passed = 0; passed < seconds; passed += 1) {
    clock.advance(1000);
    await calm();
  }
}
