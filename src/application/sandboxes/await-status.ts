import { Failure } from '../../domain/failure.ts';
import type { Sandbox } from '../../domain/sandbox.ts';
import type { Clock } from '../../ports/clock.ts';
import type { SandboxStore } from '../../ports/sandbox-store.ts';
import { waitAtMost } from '../timers.ts';
import { getSandbox } from './find-sandbox.ts';
import type { SandboxReconciler } from './sandbox-reconciler.ts';

/** How long a pause, a resumption or a deletion is waited for, if nothing else is configured. */
export const defaultAnswerWithinMs = 20_000;

export interface AwaitStatusDeps {
  readonly store: SandboxStore;
  readonly reconciler: SandboxReconciler;
  readonly clock: Clock;
  /** How long a pause, a resumption or a deletion is waited for, in milliseconds. Then the status on the way is returned. */
  readonly answerWithinMs: number;
}

/**
 * Reconciles the sandbox and returns it. Throws what kept it from the wanted status: a failure of the runtime, or
 * `sandbox_not_running` or `sandbox_not_paused` if it ended as ERROR or MISSING.
 */
export async function awaitStatus(deps: AwaitStatusDeps, ownerId: string, id: string, wanted: 'PAUSED' | 'RUNNING'): Promise<Sandbox> {
  const { store, clock, answerWithinMs, reconciler } = deps;
  const reconciled = await waitAtMost(clock, answerWithinMs, reconciler.reconcile(id));
  const sandbox = await getSandbox(store, ownerId, id);
  const { status } = sandbox;
  if (status === wanted) return sandbox;
  if (reconciled?.failure != null) throw reconciled.failure;
  // Otherwise it is still on the way, or somebody moved it on after it got there.
  if (status !== 'ERROR' && status !== 'MISSING') return sandbox;
  throw new Failure(wanted === 'PAUSED' ? 'sandbox_not_running' : 'sandbox_not_paused', { id, status });
}
