import type { OwnerScope } from '../../domain/principal.ts';
import { Failure } from '../../domain/failure.ts';
import { move } from '../../domain/sandbox-lifecycle.ts';
import type { PauseKind, Sandbox } from '../../domain/sandbox.ts';
import type { SandboxesDeps } from './sandbox-deps.ts';
import { awaitStatus } from './sandbox-reconciler.ts';
import { getSandbox, writeMove } from './sandbox-records.ts';

/**
 * Pauses the owner's running sandbox and returns it when it is PAUSED. A paused one is returned as it is. Without a `pauseKind` it is
 * frozen if the runtime can, and stopped otherwise. Throws `sandbox_not_found`, `sandbox_not_running`, `sandbox_busy`,
 * `freeze_unsupported`, `runtime_unavailable` or `runtime_timeout`.
 */
export async function pauseSandbox(deps: SandboxesDeps, scope: OwnerScope, id: string, asked?: PauseKind): Promise<Sandbox> {
  const { name: runtime, capabilities: { freeze: canFreeze } } = deps.runtime;
  const pauseKind = asked ?? (canFreeze ? 'freeze' : 'stop');
  for (;;) {
    const sandbox = await getSandbox(deps.store, scope, id);
    const { status } = sandbox;
    if (status === 'PAUSED') return sandbox;
    if (status === 'PAUSING') return await awaitStatus(deps, scope, id, 'PAUSED');
    if (status === 'STARTING' || status === 'RESUMING') throw new Failure('sandbox_busy', { id, status });
    if (pauseKind === 'freeze' && !canFreeze) throw new Failure('freeze_unsupported', { runtime });
    const next = move(sandbox, 'pause', 'user', { now: deps.clock.now(), reason: { code: 'paused_by_owner' }, pauseKind });
    if (next === null) throw new Failure('sandbox_not_running', { id, status });
    if (await writeMove(deps, sandbox, next, 'user')) return await awaitStatus(deps, scope, id, 'PAUSED');
  }
}
