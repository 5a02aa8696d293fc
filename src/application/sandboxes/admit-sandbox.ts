import { Failure } from '../../domain/failure.ts';
import type { Sandbox } from '../../domain/sandbox.ts';
import { applyTransition } from '../../domain/sandbox-lifecycle.ts';
import type { LimitReached } from '../../domain/admission-limits.ts';
import type { Limited } from '../../ports/idempotency-claim.ts';
import { waitAtMost } from '../timers.ts';
import type { SandboxUseCaseDeps } from './sandboxes.ts';
import { isInUse, writeSandbox } from './sandbox-records.ts';

/** What happens if a limit on running sandboxes is reached: the newcomer is refused, or the longest idle one is paused for it. */
export type WhenFull = 'refuse' | 'pause_idle';

const maxTries = 20;

/** `minIdleMs`, if nothing else is configured. */
export const defaultMinIdleMs = 5 * 60_000;

/** A guess: there is room again when users pause or delete sandboxes. */
const limitRetryAfterSeconds = 10;

/**
 * Attempts the write that makes a sandbox count as running. The store checks the limits in the same transaction. If a limit is reached
 * and the policy allows it, pauses an idle sandbox and tries again. Throws `sandbox_limit_reached`.
 */
export async function admit<T extends { readonly kind: string }>(
  deps: SandboxUseCaseDeps,
  newcomer: Pick<Sandbox, 'id' | 'ownerId'>,
  attempt: () => Promise<T | Limited>,
): Promise<T> {
  const tried = new Set([newcomer.id]);
  for (let attempts = 0; ; attempts += 1) {
    const outcome = await attempt();
    if (!isLimited(outcome)) return outcome;
    const { limit, max } = outcome.reached;
    const mayPause = deps.whenFull === 'pause_idle' && attempts < maxTries && (limit === 'running' || limit === 'running_per_owner');
    if (mayPause && (await makeRoom(deps, newcomer, outcome.reached, tried))) continue;
    throw new Failure('sandbox_limit_reached', { limit, max, retryAfterSeconds: limitRetryAfterSeconds });
  }
}

/** Pauses the longest idle sandbox that has no work. Returns false if there is none, or if the pause takes too long. */
async function makeRoom(
  deps: SandboxUseCaseDeps, { id, ownerId }: Pick<Sandbox, 'id' | 'ownerId'>, { limit, max }: LimitReached, tried: Set<string>,
): Promise<boolean> {
  const { runtime, reconciler, clock, answerWithinMs } = deps;
  const idle = await longestIdle(deps, limit === 'running_per_owner' ? ownerId : null, tried);
  if (idle === null) return false;
  const reason = { code: 'made_room', forSandbox: id, limit, max } as const;
  const pauseKind = runtime.capabilities.freeze ? 'freeze' : 'stop';
  const paused = applyTransition(idle, 'pause', 'skep', { now: clock.now(), reason, pauseKind });
  if (paused !== null && (await writeSandbox(deps, idle, paused, 'skep'))) {
    return (await waitAtMost(clock, answerWithinMs, reconciler.reconcile(idle.id))) !== null;
  }
  return true;
}

async function longestIdle(
  deps: SandboxUseCaseDeps, ownerId: string | null, tried: Set<string>,
): Promise<Sandbox | null> {
  const { store, clock, minIdleMs } = deps;
  for (const sandbox of await store.sandboxes.longestIdle(ownerId, maxTries)) {
    const now = clock.now();
    // A time far in the future is unknown: the clock was set back since then.
    const since = [sandbox.lastActiveAt, sandbox.statusSince].find((at) => at <= now + minIdleMs) ?? -Infinity;
    if (tried.has(sandbox.id) || now - since < minIdleMs) continue;
    tried.add(sandbox.id);
    if (!(await isInUse(deps, sandbox))) return sandbox;
  }
  return null;
}

function isLimited(outcome: { readonly kind: string }): outcome is Limited {
  return outcome.kind === 'limit';
}
