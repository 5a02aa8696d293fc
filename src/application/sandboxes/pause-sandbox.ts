import type { OwnerScope } from '../../domain/principal.ts';
import { Failure } from '../../domain/failure.ts';
import { applyTransition, stopFrozenByOwner } from '../../domain/sandbox-lifecycle.ts';
import type { PauseKind, Sandbox } from '../../domain/sandbox.ts';
import { waitAtMost } from '../timers.ts';
import type { SandboxesDeps } from './sandboxes.ts';
import { awaitStatus } from './sandbox-reconciler.ts';
import { getSandbox, writeSandbox } from './sandbox-records.ts';

/**
 * Pauses a running sandbox and returns it when it is PAUSED. Returns a paused sandbox unchanged, but stops a frozen one if `asked` is
 * `stop`. Without `asked`, freezes the sandbox if the runtime can, and stops it otherwise. Throws `sandbox_not_found`,
 * `sandbox_not_running`, `sandbox_busy`, `freeze_unsupported`, `runtime_unavailable` or `runtime_timeout`.
 */
export async function pauseSandbox(deps: SandboxesDeps, scope: OwnerScope, id: string, asked?: PauseKind): Promise<Sandbox> {
  const { name: runtime, capabilities: { freeze: canFreeze } } = deps.runtime;
  const pauseKind = asked ?? (canFreeze ? 'freeze' : 'stop');
  const isToStop = ({ status, pauseKind }: Sandbox): boolean => status === 'PAUSED' && asked === 'stop' && pauseKind === 'freeze';
  for (;;) {
    const sandbox = await getSandbox(deps.store, scope, id);
    const { status } = sandbox;
    const now = deps.clock.now();
    if (isToStop(sandbox)) {
      if (await writeSandbox(deps, sandbox, stopFrozenByOwner(sandbox, now), 'user')) return await awaitStop(deps, scope, id);
      continue;
    }
    if (status === 'PAUSED') return sandbox;
    if (status === 'STARTING' || status === 'RESUMING') throw new Failure('sandbox_busy', { id, status });
    if (status !== 'PAUSING') {
      if (pauseKind === 'freeze' && !canFreeze) throw new Failure('freeze_unsupported', { runtime });
      const next = applyTransition(sandbox, 'pause', 'user', { now, reason: { code: 'paused_by_owner' }, pauseKind });
      if (next === null) throw new Failure('sandbox_not_running', { id, status });
      if (!(await writeSandbox(deps, sandbox, next, 'user'))) continue;
    }
    const paused = await awaitStatus(deps, scope, id, 'PAUSED');
    // Somebody else may have frozen it first.
    if (!isToStop(paused)) return paused;
  }
}

/** Waits until a frozen sandbox is stopped. Its record is PAUSED before and after, so only a failure shows that the stop failed. */
async function awaitStop({ store, clock, reconciler, answerWithinMs }: SandboxesDeps, scope: OwnerScope, id: string): Promise<Sandbox> {
  const reconciled = await waitAtMost(clock, answerWithinMs, reconciler.reconcile(id));
  if (reconciled?.failure != null) throw reconciled.failure;
  return await getSandbox(store, scope, id);
}
