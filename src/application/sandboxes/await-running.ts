import { Failure } from '../../domain/failure.ts';
import type { OwnerScope } from '../../domain/principal.ts';
import type { Sandbox } from '../../domain/sandbox.ts';
import type { SandboxesDeps } from './sandboxes.ts';
import { awaitStatus } from './sandbox-reconciler.ts';

/**
 * Waits until the sandbox, which starts or is resumed, is RUNNING, and returns it. Its spec limits the time. Throws `sandbox_not_found`,
 * `sandbox_not_running`, `runtime_unavailable`, `runtime_timeout`, and the signal's reason.
 */
export async function awaitRunning(deps: SandboxesDeps, scope: OwnerScope, id: string, signal: AbortSignal): Promise<Sandbox> {
  for (;;) {
    signal.throwIfAborted();
    const sandbox = await awaitStatus(deps, scope, id, 'RUNNING');
    const { status } = sandbox;
    if (status === 'RUNNING') return sandbox;
    if (status !== 'STARTING' && status !== 'RESUMING') throw new Failure('sandbox_not_running', { id, status });
  }
}
