import type { Sandbox } from '../../domain/sandbox.ts';
import type { SandboxFact } from '../../domain/sandbox-fact.ts';
import { untilTooLate } from './deadline.ts';
import { unwanted, type StepContext } from './step-context.ts';
import { recordMove } from './writes.ts';

/** Waits until what runs in the sandbox serves; not longer than until something happened to it, or it is too late. */
export async function awaitReadyStep(context: StepContext, sandbox: Sandbox, fact: SandboxFact | null): Promise<void> {
  const { parts, run } = context;
  const { probe, clock } = parts;
  const exposedUrls = fact?.exposedUrls ?? [];
  const isReady = await untilTooLate(clock, sandbox, async (late) => {
    const signal = unwanted(context, run.woken, late);
    try {
      await probe.untilReady(sandbox.spec.ready, exposedUrls, signal);
      return true;
    } catch (error) {
      if (signal.aborted) return false;
      throw error;
    }
  });
  if (!isReady) return;
  await recordMove(parts, sandbox, 'ready', { now: clock.now(), detail: readyDetail(sandbox), exposedUrls }, 'runtime');
}

function readyDetail({ status }: Sandbox): string | null {
  if (status !== 'RESUMING') return null;
  return 'resumed: its processes were started again over the files that were kept';
}
