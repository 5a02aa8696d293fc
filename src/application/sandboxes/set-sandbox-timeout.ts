import { Failure } from '../../domain/failure.ts';
import { withMaxLife } from '../../domain/idle-policy.ts';
import type { OwnerScope } from '../../domain/principal.ts';
import { nextVersion } from '../../domain/sandbox-lifecycle.ts';
import type { SandboxUseCaseDeps } from './sandboxes.ts';
import { getSandbox } from './sandbox-records.ts';

/**
 * Sets the deletion of the sandbox to `timeoutMs` from now, even if it is active. That may be sooner or later than before. Throws
 * `sandbox_not_found`, or `invalid_request` if the spec does not allow such a long life.
 */
export async function setSandboxTimeout(
  deps: SandboxUseCaseDeps, scope: OwnerScope, id: string, timeoutMs: number,
): Promise<void> {
  const { store, specs, reconciler, clock } = deps;
  for (;;) {
    const sandbox = await getSandbox(store, scope, id);
    const { spec, createdAt } = sandbox;
    const now = clock.now();
    const maxMs = specs.find(spec.id)?.rest.maxLifeMs ?? null;
    const maxLifeMs = now - createdAt + timeoutMs;
    if (maxMs !== null && maxLifeMs > maxMs) {
      throw new Failure('invalid_request', { problems: [{ argument: 'timeoutMs', reason: { code: 'timeout_above_spec', maxMs } }] });
    }
    const { kind } = await store.sandboxes.replace(nextVersion(withMaxLife(sandbox, maxLifeMs), now, {}));
    if (kind === 'stale') continue;
    reconciler.enqueue(id);
    return;
  }
}
