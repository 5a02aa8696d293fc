import { Failure } from '../../domain/failure.ts';
import type { PauseKind, Sandbox } from '../../domain/sandbox.ts';
import { move } from '../../domain/sandbox-lifecycle.ts';
import { awaitStatus, type AwaitStatusDeps } from './await-status.ts';
import { getSandbox } from './find-sandbox.ts';
import { writeMove, type WriteDeps } from './sandbox-writes.ts';

export type PauseSandboxDeps = AwaitStatusDeps & WriteDeps;

/**
 * Pauses the owner's running sandbox and returns it when it is PAUSED. A paused one is returned as it is. Throws
 * `sandbox_not_found`, `sandbox_not_running`, `sandbox_busy`, `runtime_unavailable` or `runtime_timeout`.
 */
export async function pauseSandbox(deps: PauseSandboxDeps, ownerId: string, id: string, pauseKind: PauseKind): Promise<Sandbox> {
  for (;;) {
    const sandbox = await getSandbox(deps.store, ownerId, id);
    const { status } = sandbox;
    if (status === 'PAUSED') return sandbox;
    if (status === 'PAUSING') return await awaitStatus(deps, ownerId, id, 'PAUSED');
    if (status === 'STARTING' || status === 'RESUMING') throw new Failure('sandbox_busy', { id, status });
    const next = move(sandbox, 'pause', { now: deps.clock.now(), detail: 'paused by its owner', pauseKind });
    if (next === null) throw new Failure('sandbox_not_running', { id, status });
    if (await writeMove(deps, sandbox, next, 'user')) return await awaitStatus(deps, ownerId, id, 'PAUSED');
  }
}
