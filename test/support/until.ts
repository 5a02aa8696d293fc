import { setTimeout as pause } from 'node:timers/promises';

const quietMs = 3_000;

/**
 * Asks again and again until the answer is what is wanted, and returns it. The wait between two questions keeps the machine free; it
 * decides nothing. After a few seconds it prints what it waits for. Fails, with the last answer, when the deadline has passed.
 */
export async function until<T>(ask: () => T | Promise<T>, wanted: (answer: T) => boolean, withinMs = 60_000): Promise<T> {
  const begin = performance.now();
  let isQuiet = true;
  for (;;) {
    const answer = await ask();
    if (wanted(answer)) return answer;
    const waitedMs = performance.now() - begin;
    const state = `for ${wanted.toString()}; last: ${JSON.stringify(answer)}`;
    if (waitedMs > withinMs) throw new Error(`waited ${withinMs} ms ${state}`);
    if (isQuiet && waitedMs > quietMs) process.stderr.write(`still waiting ${state}\n`);
    isQuiet &&= waitedMs <= quietMs;
    await pause(20);
  }
}
