import { isFailure, reasonOfFailure } from '../../domain/failure.ts';
import { readyDeadline } from '../../domain/sandbox-lifecycle.ts';
import type { SandboxStep } from '../../domain/sandbox-next-step.ts';
import type { ObservedSandbox, Sandbox, SandboxStatus } from '../../domain/sandbox.ts';
import type { Clock } from '../../ports/clock.ts';
import type { ReadinessProbe } from '../../ports/readiness-probe.ts';
import type { Secrets } from '../../ports/secrets.ts';
import type { Run } from '../keyed-worker.ts';
import { timeout } from '../timers.ts';
import { recordMove } from './sandbox-records.ts';
import type { SandboxDeps } from './sandboxes.ts';
import type { StartQueue, StartSlot } from './start-queue.ts';

export interface SandboxReconcilerDeps extends SandboxDeps {
  readonly probe: ReadinessProbe;
  readonly queue: StartQueue;
  readonly secrets: Secrets;
  /** Keeps what was changed in a sandbox, for while it does not run. Rejects only if the store fails. */
  readonly keepChanges: (sandboxId: string, signal: AbortSignal) => Promise<void>;
}

/** A step, and the state that it was decided on; null if that is not known. */
export type DecidedStep = SandboxStep & { readonly observed: ObservedSandbox | null };

export interface StepContext {
  readonly deps: SandboxReconcilerDeps;
  readonly run: Run;
  /** Fires when this process ends. */
  readonly closing: AbortSignal;
  startSlot: StartSlot | null;
}

/** Returns a signal that fires when the step is not wanted here any more. */
export function unwanted({ run, closing }: StepContext, ...others: readonly AbortSignal[]): AbortSignal {
  return AbortSignal.any([run.interrupted, closing, ...others]);
}

/** Gives the run's start slot back. Idempotent. */
export function releaseStartSlot(context: StepContext): void {
  context.startSlot?.release();
  context.startSlot = null;
}

/** Acts on the runtime. If that fails while the sandbox has the status, the status is taken back. */
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
      const { pausedBy } = sandbox;
      const now = deps.clock.now();
      if (pausedBy?.hasFailed === true) await recordMove(deps, sandbox, 'failed', { now, reason: pausedBy.reason }, 'runtime');
      else await recordMove(deps, sandbox, 'refused', { now, reason: reasonOfFailure(error) }, 'runtime');
    }
    throw error;
  }
}

/** Returns a signal that fires when the start or resumption of the sandbox is too late. */
export function timeoutOfStart(clock: Clock, sandbox: Sandbox): ReturnType<typeof timeout> {
  const deadline = readyDeadline(sandbox) ?? Number.MAX_SAFE_INTEGER;
  return timeout(clock, Math.max(0, deadline - clock.now()));
}
