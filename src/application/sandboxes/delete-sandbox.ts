import { Failure } from '../../domain/failure.ts';
import type { OwnerScope } from '../../domain/principal.ts';
import { markDeleted } from '../../domain/sandbox-lifecycle.ts';
import { waitAtMost } from '../timers.ts';
import type { SandboxesDeps } from './sandboxes.ts';
import { isVisible, writeMove } from './sandbox-records.ts';

/**
 * Deletes the owner's sandbox. It is gone for every caller when this returns; if the runtime does not answer, it is removed
 * there later. Idempotent. Throws `sandbox_not_found` if there never was one, or it is another owner's.
 */
export async function deleteSandbox(deps: SandboxesDeps, scope: OwnerScope, id: string): Promise<void> {
  const { store, clock, reconciler, answerWithinMs } = deps;
  for (;;) {
    const sandbox = await store.find(id);
    if (sandbox === null || !isVisible(sandbox, scope)) throw new Failure('sandbox_not_found', { id });
    if (sandbox.deletedAt !== null) break;
    if (await writeMove(deps, sandbox, markDeleted(sandbox, { code: 'deleted_by_owner' }, clock.now()), 'user')) break;
  }
  await waitAtMost(clock, answerWithinMs, reconciler.interrupt(id));
}
