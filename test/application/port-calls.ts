import { setImmediate as nextTurn } from 'node:timers/promises';

let calls = 0;

/** Notes a call of a port by one of the processes of a test. */
export function noteCall(): void {
  calls += 1;
}

/**
 * Waits until all that is ready has run: a whole turn of the event loop passes in which no port is called. The ports of these
 * tests answer within a turn, and Skep does nothing that lasts without calling one.
 */
export async function calm(): Promise<void> {
  for (let seen = -1; seen !== calls; ) {
    seen = calls;
    await nextTurn();
  }
}
