import { Failure } from '../../domain/failure.ts';
import type { Caller } from '../../domain/principal.ts';
import type { Sandbox } from '../../domain/sandbox.ts';
import { waitAtMost } from '../timers.ts';
import { getSandbox } from './sandbox-records.ts';
import type { SandboxUseCaseDeps } from './sandboxes.ts';

/** `answerWithinMs`, if nothing else is configured. */
export const defaultAnswerWithinMs = 20_000;

/**
 * Reconciles the sandbox, and returns it in the wanted status, or in the present one if that takes longer than `answerWithinMs`. Throws the
 * failure of the runtime, or `sandbox_not_running` if the sandbox is in ERROR or MISSING now, or PAUSED again.
 */
export async function reconcileUntil(
  deps: SandboxUseCaseDeps, caller: Caller | null, id: string, wanted: 'PAUSED' | 'RUNNING',
): Promise<Sandbox> {
  const { store, clock, answerWithinMs, reconciler } = deps;
  const reconciled = await waitAtMost(clock, answerWithinMs, reconciler.reconcile(id));
  const sandbox = await getSandbox(store, caller, id);
  const { status } = sandbox;
  if (status === wanted) return sandbox;
  if (reconciled?.failure != null) throw reconciled.failure;
  const isRefused = status === 'PAUSED' && sandbox.refused !== null;
  // Still in transition, or changed again after it reached the status.
  if (status !== 'ERROR' && status !== 'MISSING' && !isRefused) return sandbox;
  throw new Failure('sandbox_not_running', { id, status });
}

/**
 * Waits until a STARTING or RESUMING sandbox is RUNNING, and returns it. Its spec limits the time. Throws `sandbox_not_found`,
 * `sandbox_not_running`, `runtime_unavailable`, `runtime_timeout`, and the signal's reason.
 */
export async function awaitRunning(deps: SandboxUseCaseDeps, caller: Caller | null, id: string, signal: AbortSignal): Promise<Sandbox> {
  for (;;) {
    signal.throwIfAborted();
    const sandbox = await reconcileUntil(deps, caller, id, 'RUNNING');
    const { status } = sandbox;
    if (status === 'RUNNING') return sandbox;
    if (status !== 'STARTING' && status !== 'RESUMING') throw new Failure('sandbox_not_running', { id, status });
  }
}
