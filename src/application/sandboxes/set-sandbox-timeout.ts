import { Failure } from '../../domain/failure.ts';
import { chosenTimeoutOf, longestLifeMs, timeoutOf, withTimeout } from '../../domain/idle-policy.ts';
import type { Caller } from '../../domain/principal.ts';
import { nextVersion } from '../../domain/sandbox-lifecycle.ts';
import type { Sandbox } from '../../domain/sandbox.ts';
import type { SandboxUseCaseDeps } from './sandboxes.ts';
import { getSandbox } from './sandbox-records.ts';

/**
 * Sets the end of the sandbox's timeout to `timeoutMs` from now. It is deleted or paused then, even if it is active. That may be sooner or
 * later than before. Throws `sandbox_not_found`, or `invalid_request` if the spec does not allow such a long life.
 */
export async function setSandboxTimeout(deps: SandboxUseCaseDeps, caller: Caller, id: string, timeoutMs: number): Promise<void> {
  await changeTimeout(deps, caller, id, timeoutMs, (_, askedMs, maxMs) => {
    if (maxMs === null || askedMs <= maxMs) return askedMs;
    throw new Failure('invalid_request', { problems: [{ argument: 'timeoutMs', reason: { code: 'timeout_above_spec', maxMs } }] });
  });
}

/**
 * Sets the end of the sandbox's timeout to `timeoutMs` from now, or to the end of the longest life that its spec allows, if that is later
 * than before. If the timeout is still `replacedMs` after the creation (null: none, or one that began after a resumption), also if it is
 * sooner. Throws `sandbox_not_found`.
 */
export async function extendSandboxTimeout(
  deps: SandboxUseCaseDeps, caller: Caller, id: string, timeoutMs: number, replacedMs?: number | null,
): Promise<void> {
  await changeTimeout(deps, caller, id, timeoutMs, (sandbox, askedMs, maxMs) => {
    const afterMs = Math.min(askedMs, longestLifeMs(sandbox, maxMs) ?? Infinity);
    return chosenTimeoutOf(sandbox) === replacedMs || afterMs > (timeoutOf(sandbox) ?? Infinity) ? afterMs : null;
  });
}

/**
 * Writes another time from the sandbox's creation to the end of its timeout. `choose` gets the time that ends `timeoutMs` from now, and the
 * maximum (null: none), and returns the new time. If it returns null, nothing is written.
 */
async function changeTimeout(
  { store, specs, reconciler, clock }: SandboxUseCaseDeps, caller: Caller, id: string, timeoutMs: number,
  choose: (sandbox: Sandbox, askedMs: number, maxMs: number | null) => number | null,
): Promise<void> {
  for (;;) {
    const sandbox = await getSandbox(store, caller, id);
    const now = clock.now();
    const { id: specId, rest } = sandbox.spec;
    // A sandbox that is paused at the end of its timeout keeps the maximum life of its spec.
    const maxMs = rest.timeoutPause === undefined ? (specs.find(specId)?.rest.maxLifeMs ?? null) : rest.maxLifeMs;
    const afterMs = choose(sandbox, now - sandbox.createdAt + timeoutMs, maxMs);
    if (afterMs === null) return;
    const { kind } = await store.sandboxes.replace(nextVersion(withTimeout(sandbox, afterMs), now, {}));
    if (kind === 'stale') continue;
    reconciler.enqueue(id);
    return;
  }
}
