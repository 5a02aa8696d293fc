import type { Sandbox, SandboxFact } from '../../domain/sandbox.ts';
import type { SandboxLaunch } from '../../ports/sandbox-runtime.ts';
import { untilTooLate } from './deadline.ts';
import { takingBack } from './refused.ts';
import { endTurn, type StepContext, unwanted } from './step-context.ts';
import { Telling } from './telling.ts';
import { ensureTurn } from './turn.ts';
import { recordMove } from './writes.ts';

/** Makes the sandbox and runs it, in its turn. Null where that was left off. */
export async function launchStep(context: StepContext, sandbox: Sandbox): Promise<SandboxFact | null> {
  const { parts } = context;
  const telling = new Telling(parts.store, parts.clock, sandbox);
  const progress = (detail: string): void => telling.tell(detail);
  const fact = await inTurn(context, telling, (signal) => parts.runtime.start(launchOf(sandbox), progress, signal));
  // With a detail it could not begin; without one, it is on its way.
  if (fact !== null && fact.detail !== null && (fact.state === 'absent' || fact.state === 'created')) {
    await recordMove(parts, telling.sandbox, 'failed', { now: parts.clock.now(), detail: fact.detail }, 'runtime');
  }
  return fact;
}

/** Lets a frozen sandbox go on at once, and runs a stopped one again in its turn. Null where that was left off. */
export async function resumeStep(context: StepContext, sandbox: Sandbox, found: SandboxFact | null): Promise<SandboxFact | null> {
  const { parts } = context;
  const telling = new Telling(parts.store, parts.clock, sandbox);
  const resume = (signal: AbortSignal): Promise<SandboxFact> => parts.runtime.resume(launchOf(sandbox), signal);
  const act = (): Promise<SandboxFact | null> =>
    found?.state === 'frozen' ? whileWanted(context, telling, resume) : inTurn(context, telling, resume);
  return await takingBack(parts, 'RESUMING', () => telling.sandbox, act);
}

function launchOf({ instanceId, spec, sessionApiKey }: Sandbox): SandboxLaunch {
  return { id: instanceId, spec, sessionApiKey };
}

async function inTurn(context: StepContext, telling: Telling, work: (signal: AbortSignal) => Promise<SandboxFact>): Promise<SandboxFact | null> {
  try {
    return await whileWanted(context, telling, async (signal) => ((await ensureTurn(context, telling, signal)) ? await work(signal) : null));
  } finally {
    endTurn(context);
    await telling.end();
  }
}

/** Does the work unless it is too late or no longer wanted; null when it was left off. */
async function whileWanted(
  context: StepContext,
  telling: Telling,
  work: (signal: AbortSignal) => Promise<SandboxFact | null>,
): Promise<SandboxFact | null> {
  return await untilTooLate(context.parts.clock, telling.sandbox, async (late) => {
    const signal = unwanted(context, telling.moved, late);
    try {
      return await work(signal);
    } catch (error) {
      if (signal.aborted) return null;
      throw error;
    }
  });
}
