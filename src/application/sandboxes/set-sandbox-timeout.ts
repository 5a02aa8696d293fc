import { Failure } from '../../domain/failure.ts';
import { longestLifeMs, withMaxLife } from '../../domain/idle-policy.ts';
import type { Caller } from '../../domain/principal.ts';
import { nextVersion } from '../../domain/sandbox-lifecycle.ts';
import type { SandboxUseCaseDeps } from './sandboxes.ts';
import { getSandbox } from './sandbox-records.ts';

/**
 * Sets the deletion of the sandbox to `timeoutMs` from now, even if it is active. That may be sooner or later than before. Throws
 * `sandbox_not_found`, or `invalid_request` if the spec does not allow such a long life.
 */
export async function setSandboxTimeout(
  deps: SandboxUseCaseDeps, caller: Caller, id: string, timeoutMs: number,
): Promise<void> {
  const { store, specs, reconciler, clock } = deps;
  for (;;) {
    const sandbox = await getSandbox(store, caller, id);
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

/**
 * Sets the deletion of the sandbox to `timeoutMs` from now, or to the end of the longest life that its spec allows, if that is later than
 * before. If the maximum life of the sandbox is still `replacedLifeMs` (null: without an end), also if it is sooner. Throws
 * `sandbox_not_found`.
 */
export async function extendSandboxTimeout(
  deps: SandboxUseCaseDeps, caller: Caller, id: string, timeoutMs: number, replacedLifeMs?: number | null,
): Promise<void> {
  const { store, specs, reconciler, clock } = deps;
  for (;;) {
    const sandbox = await getSandbox(store, caller, id);
    const { createdAt, spec: { id: specId, rest } } = sandbox;
    const now = clock.now();
    const longestMs = longestLifeMs(sandbox, specs.find(specId)?.rest.maxLifeMs ?? null) ?? Infinity;
    const maxLifeMs = Math.min(now - createdAt + timeoutMs, longestMs);
    if (maxLifeMs <= (rest.maxLifeMs ?? Infinity) && rest.maxLifeMs !== replacedLifeMs) return;
    const { kind } = await store.sandboxes.replace(nextVersion(withMaxLife(sandbox, maxLifeMs), now, {}));
    if (kind === 'stale') continue;
    reconciler.enqueue(id);
    return;
  }
}
