import { Failure } from '../../domain/failure.ts';
import { longestLifeMs, withMaxLife } from '../../domain/idle-policy.ts';
import type { Caller } from '../../domain/principal.ts';
import { nextVersion } from '../../domain/sandbox-lifecycle.ts';
import type { Sandbox } from '../../domain/sandbox.ts';
import type { SandboxUseCaseDeps } from './sandboxes.ts';
import { getSandbox } from './sandbox-records.ts';

/**
 * Sets the deletion of the sandbox to `timeoutMs` from now, even if it is active. That may be sooner or later than before. Throws
 * `sandbox_not_found`, or `invalid_request` if the spec does not allow such a long life.
 */
export async function setSandboxTimeout(deps: SandboxUseCaseDeps, caller: Caller, id: string, timeoutMs: number): Promise<void> {
  await changeMaxLife(deps, caller, id, timeoutMs, (_, askedMs, maxMs) => {
    if (maxMs === null || askedMs <= maxMs) return askedMs;
    throw new Failure('invalid_request', { problems: [{ argument: 'timeoutMs', reason: { code: 'timeout_above_spec', maxMs } }] });
  });
}

/**
 * Sets the deletion of the sandbox to `timeoutMs` from now, or to the end of the longest life that its spec allows, if that is later than
 * before. If the maximum life of the sandbox is still `replacedLifeMs` (null: without an end), also if it is sooner. Throws
 * `sandbox_not_found`.
 */
export async function extendSandboxTimeout(
  deps: SandboxUseCaseDeps, caller: Caller, id: string, timeoutMs: number, replacedLifeMs?: number | null,
): Promise<void> {
  await changeMaxLife(deps, caller, id, timeoutMs, (sandbox, askedMs, maxMs) => {
    const { maxLifeMs: before } = sandbox.spec.rest;
    const maxLifeMs = Math.min(askedMs, longestLifeMs(sandbox, maxMs) ?? Infinity);
    return before === replacedLifeMs || maxLifeMs > (before ?? Infinity) ? maxLifeMs : null;
  });
}

/**
 * Writes another time from the sandbox's creation to its deletion. `choose` gets the time that ends `timeoutMs` from now, and the maximum
 * of the spec (null: none), and returns the new time. If it returns null, nothing is written.
 */
async function changeMaxLife(
  { store, specs, reconciler, clock }: SandboxUseCaseDeps, caller: Caller, id: string, timeoutMs: number,
  choose: (sandbox: Sandbox, askedMs: number, maxMs: number | null) => number | null,
): Promise<void> {
  for (;;) {
    const sandbox = await getSandbox(store, caller, id);
    const now = clock.now();
    const maxLifeMs = choose(sandbox, now - sandbox.createdAt + timeoutMs, specs.find(sandbox.spec.id)?.rest.maxLifeMs ?? null);
    if (maxLifeMs === null) return;
    const { kind } = await store.sandboxes.replace(nextVersion(withMaxLife(sandbox, maxLifeMs), now, {}));
    if (kind === 'stale') continue;
    reconciler.enqueue(id);
    return;
  }
}
