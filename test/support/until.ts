import { setTimeout as pause } from 'node:timers/promises';

/**
 * Asks again and again until the answer is what is wanted, and answers with it. The wait between two questions keeps
 * the machine free; it decides nothing. Fails, with the last answer, when the deadline has passed.
 */
export async function until<T>(ask: () => T | Promise<T>, wanted: (answer: T) => boolean, withinMs = 60_000): Promise<T> {
  const deadline = performance.now() + withinMs;
  for (;;) {
    const answer = await ask();
    if (wanted(answer)) return answer;
    if (performance.now() > deadline) throw new Error(`not within ${withinMs} ms; last: ${JSON.stringify(answer)}`);
    await pause(20);
  }
}
