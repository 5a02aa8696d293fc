import { isFailure } from '../../domain/failure.ts';
import { isPooled, type Sandbox } from '../../domain/sandbox.ts';
import { takeTurn } from '../../domain/sandbox-lifecycle.ts';
import { unwanted, type StepContext } from './step-context.ts';
import type { Turn, Urgency } from './start-queue.ts';
import { Telling } from './telling.ts';
import { recordMove } from './writes.ts';

/**
 * Gets what the sandbox needs and this host lacks, waits for its turn, and writes down that it has come, from when on its
 * time counts. Meanwhile `statusDetail` tells what it waits for.
 */
export async function takeTurnStep(context: StepContext, sandbox: Sandbox): Promise<void> {
  const { parts } = context;
  const { store, clock } = parts;
  const telling = new Telling(store, clock, sandbox);
  const signal = unwanted(context, telling.moved);
  try {
    const turn = await ready(context, telling, isPooled(sandbox) ? 'pool' : 'asked', signal);
    await telling.end();
    if (turn === null) return;
    context.turn = turn;
    await store.replace(takeTurn(telling.sandbox, clock.now()));
  } catch (error) {
    await telling.end();
    if (signal.aborted) return;
    if (isFailure(error) && error.code !== 'store_unavailable') {
      // Its time begins to count, so that it is not left waiting for ever for a runtime that only fails.
      await store.replace(takeTurn(telling.sandbox, clock.now(), error.message));
    }
    throw error;
  }
}

/** Makes sure that the drive has a turn for a sandbox whose time counts already, as an earlier process left it. */
export async function ensureTurn(context: StepContext, telling: Telling, signal: AbortSignal): Promise<boolean> {
  context.turn ??= await ready(context, telling, isPooled(telling.sandbox) ? 'pool' : 'again', signal);
  return context.turn !== null;
}

/** What the sandbox needs, and a turn; null where that can't be had, which is then written. */
async function ready(context: StepContext, telling: Telling, urgency: Urgency, signal: AbortSignal): Promise<Turn | null> {
  const { parts } = context;
  const { runtime, queue, clock } = parts;
  const { spec, ownerId, status } = telling.sandbox;
  if (status === 'STARTING') {
    const provision = await runtime.provide(spec, (detail) => telling.tell(detail), signal);
    if (provision.kind === 'refused') {
      await telling.end();
      await recordMove(parts, telling.sandbox, 'failed', { now: clock.now(), detail: provision.detail }, 'runtime');
      return null;
    }
  }
  telling.tell('waiting for its turn');
  return await queue.take(ownerId, urgency, signal);
}
