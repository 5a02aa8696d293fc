import { lastProbe } from '../../domain/readiness.ts';
import type { ExposedUrl, Sandbox, SandboxFact } from '../../domain/sandbox.ts';
import { untilTooLate } from './deadline.ts';
import { type StepContext, unwanted } from './step-context.ts';
import { Telling } from './telling.ts';
import { recordMove } from './writes.ts';

/**
 * Waits until what runs in the sandbox serves; not longer than until something happened to it, or it is too late. What the
 * probe meets meanwhile is told, so that whoever finds it too late knows what was seen last.
 */
export async function awaitReadyStep(context: StepContext, sandbox: Sandbox, fact: SandboxFact | null): Promise<void> {
  const { parts } = context;
  const { store, clock } = parts;
  const exposedUrls = fact?.exposedUrls ?? [];
  const telling = new Telling(store, clock, sandbox);
  const isReady = await untilTooLate(clock, sandbox, async (late) => {
    try {
      return await serves(context, telling, exposedUrls, late);
    } finally {
      if (late.aborted) await telling.finish();
      else await telling.end();
    }
  });
  if (!isReady) return;
  const change = { now: clock.now(), detail: readyDetail(sandbox), exposedUrls };
  await recordMove(parts, telling.sandbox, 'ready', change, 'runtime');
}

/** Answers when it serves; false when the wait was left off. */
async function serves(context: StepContext, telling: Telling, urls: readonly ExposedUrl[], late: AbortSignal): Promise<boolean> {
  const { parts, run } = context;
  const { ready } = telling.sandbox.spec;
  const signal = unwanted(context, run.woken, telling.moved, late);
  try {
    await parts.probe.untilReady(ready, urls, signal, (miss) => telling.tell(lastProbe(ready, miss)));
    return true;
  } catch (error) {
    if (signal.aborted) return false;
    throw error;
  }
}

function readyDetail({ status }: Sandbox): string | null {
  if (status !== 'RESUMING') return null;
  return 'resumed: its processes were started again over the files that were kept';
}
