import { Failure } from '../../domain/failure.ts';
import type { OwnerScope } from '../../domain/principal.ts';
import { markDeleted } from '../../domain/sandbox-lifecycle.ts';
import { waitAtMost } from '../timers.ts';
import { isVisible, writeSandbox } from './sandbox-records.ts';
import type { SandboxUseCaseDeps } from './sandboxes.ts';

/** Deletes the sandbox. Afterwards no caller sees it; the runtime may remove its part later. Idempotent. Throws `sandbox_not_found`. */
export async function deleteSandbox(deps: SandboxUseCaseDeps, scope: OwnerScope, id: string): Promise<void> {
  const { store, clock, reconciler, answerWithinMs } = deps;
  for (;;) {
    const sandbox = await store.sandboxes.find(id);
    if (sandbox === null || !isVisible(sandbox, scope)) throw new Failure('sandbox_not_found', { id });
    if (sandbox.deletedAt !== null) break;
    if (await writeSandbox(deps, sandbox, markDeleted(sandbox, { code: 'deleted_by_owner' }, clock.now()), 'user')) break;
  }
  await waitAtMost(clock, answerWithinMs, reconciler.interrupt(id));
}
