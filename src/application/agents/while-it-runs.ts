import { AgentRefusal } from '../../ports/agent-protocol.ts';
import type { Clock } from '../../ports/clock.ts';
import { within } from '../timers.ts';
import type { AgentProcess } from './agent-process.ts';

/** How long what an agent wrote before it ended may take to be read. */
const readWithinMs = 2000;

/**
 * Does the work under a signal that fires, besides, a while after the agent's process has ended: it may leave its streams open
 * in a process that it started, so that nobody who only reads them learns of its end. Rejects with an {@link AgentRefusal} then.
 */
export async function whileItRuns<T>(process: AgentProcess, clock: Clock, signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const gone = new AbortController();
  const working = work(AbortSignal.any([signal, gone.signal]));
  void outlived(process, clock, working).then((isOutlived) => isOutlived && gone.abort());
  try {
    return await working;
  } catch (error) {
    if (gone.signal.aborted && !(error instanceof AgentRefusal)) throw new AgentRefusal('no session came about: the agent has ended', { cause: error });
    throw error;
  }
}

/** Does the work go on though the process has ended? Never answers where the process goes on. */
async function outlived(process: AgentProcess, clock: Clock, working: Promise<unknown>): Promise<boolean> {
  const over = Promise.allSettled([working]);
  await process.exited;
  return (await within(clock, readWithinMs, over)) === null;
}
