import { Failure } from '../../domain/failure.ts';
import type { Caller } from '../../domain/principal.ts';
import type { Reason } from '../../domain/reason.ts';
import { markDeleted } from '../../domain/sandbox-lifecycle.ts';
import { waitAtMost } from '../timers.ts';
import { isVisible, originOf, writeSandbox } from './sandbox-records.ts';
import type { SandboxUseCaseDeps } from './sandboxes.ts';

/**
 * Deletes the sandbox. Afterwards no caller sees it; the runtime may remove its part later. `ownReason` is why Skep itself deletes it.
 * Idempotent. Throws `sandbox_not_found`.
 */
export async function deleteSandbox(deps: SandboxUseCaseDeps, caller: Caller, id: string, ownReason?: Reason): Promise<void> {
  const { store, clock, reconciler, answerWithinMs } = deps;
  for (;;) {
    const sandbox = await store.sandboxes.find(id);
    if (sandbox === null || !isVisible(sandbox, caller)) throw new Failure('sandbox_not_found', { id });
    if (sandbox.deletedAt !== null) break;
    const { actor, userId, reason } = originOf('deleted', sandbox, caller, ownReason);
    if (await writeSandbox(deps, sandbox, markDeleted(sandbox, reason, clock.now()), actor, userId)) break;
  }
  await waitAtMost(clock, answerWithinMs, reconciler.interrupt(id));
}
