import { isFailure } from '../../domain/failure.ts';
import { readyDeadline } from '../../domain/sandbox-lifecycle.ts';
import type { SandboxStep } from '../../domain/sandbox-next-step.ts';
import type { Sandbox, ObservedSandbox, SandboxStatus } from '../../domain/sandbox.ts';
import type { Clock } from '../../ports/clock.ts';
import type { ReadinessProbe } from '../../ports/readiness-probe.ts';
import type { SandboxRuntime } from '../../ports/sandbox-runtime.ts';
import type { Run } from '../keyed-worker.ts';
import { recordMove, type WriteDeps } from './sandbox-writes.ts';
import type { StartQueue, StartSlot } from './start-queue.ts';

export interface SandboxReconcilerDeps extends WriteDeps {
  readonly runtime: SandboxRuntime;
  readonly probe: ReadinessProbe;
  readonly clock: Clock;
  readonly queue: StartQueue;
}

/** A step, and the fact that it was decided on; null where the runtime did not tell. */
export type DecidedStep = SandboxStep & { readonly fact: ObservedSandbox | null };

/** What the steps of one drive share. */
export interface StepContext {
  readonly deps: SandboxReconcilerDeps;
  readonly run: Run;
  /** Fires when this process ends. */
  readonly closing: AbortSignal;
  /** The turn that the drive has, until what it is for is done. */
  startSlot: StartSlot | null;
}

/** Ends what a step waits for when it is no longer wanted here. */
export function unwanted({ run, closing }: StepContext, ...others: readonly AbortSignal[]): AbortSignal {
  return AbortSignal.any([run.interrupted, closing, ...others]);
}

/** Gives the drive's turn back. Idempotent. */
export function releaseStartSlot(context: StepContext): void {
  context.startSlot?.release();
  context.startSlot = null;
}

/** Acts on the runtime; where that fails, and the sandbox was in the status, the move that it was in is taken back. */
export async function revertOnFailure<T>(
  deps: SandboxReconcilerDeps,
  status: SandboxStatus,
  latest: () => Sandbox,
  act: () => Promise<T>,
): Promise<T> {
  try {
    return await act();
  } catch (error) {
    const sandbox = latest();
    if (sandbox.status === status && isFailure(error) && error.code !== 'store_unavailable') {
      await recordMove(deps, sandbox, 'refused', { now: deps.clock.now(), detail: error.message }, 'runtime');
    }
    throw error;
  }
}

/** Does the work under a signal that fires when the start or resumption of the sandbox is too late. */
export async function untilTooLate<T>(clock: Clock, sandbox: Sandbox, work: (late: AbortSignal) => Promise<T>): Promise<T> {
  const late = new AbortController();
  const deadline = readyDeadline(sandbox);
  const cancel = deadline === null ? () => {} : clock.after(Math.max(0, deadline - clock.now()), () => late.abort());
  try {
    return await work(late.signal);
  } finally {
    cancel();
  }
}
