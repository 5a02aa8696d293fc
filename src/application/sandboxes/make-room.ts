import { Failure } from '../../domain/failure.ts';
import type { Sandbox } from '../../domain/sandbox.ts';
import { move } from '../../domain/sandbox-lifecycle.ts';
import type { LimitReached, SandboxLimits } from '../../domain/sandbox-limits.ts';
import { waitAtMost } from '../timers.ts';
import type { AwaitStatusDeps } from './sandbox-reconciler.ts';
import { writeMove, type WriteDeps } from './sandbox-records.ts';

/** What happens if a limit on running sandboxes is reached: the newcomer is refused, or the longest idle one is frozen for it. */
export type WhenFull = 'refuse' | 'pause_idle';

export interface AdmissionDeps extends WriteDeps, AwaitStatusDeps {
  readonly limits: SandboxLimits;
  /** Default: `refuse`. */
  readonly whenFull?: WhenFull;
}

export type Limited = { readonly kind: 'limit'; readonly reached: LimitReached };

/** How many idle sandboxes are frozen at most for one start. */
const maxTries = 20;

/** A guess: when there is room again depends on what users pause and delete. */
const limitRetryAfterSeconds = 10;

export function limitFailure({ limit, max }: LimitReached): Failure {
  return new Failure('sandbox_limit_reached', { limit, max, retryAfterSeconds: limitRetryAfterSeconds });
}

/**
 * Tries to write the newcomer. If a limit is reached and the policy is `pause_idle`, freezes one idle sandbox and tries again.
 * The store checks the limits in the transaction of the write, so two newcomers never get the same place.
 */
export async function admit<T extends { readonly kind: string }>(
  deps: AdmissionDeps,
  newcomer: Pick<Sandbox, 'id' | 'ownerId'>,
  attempt: () => Promise<T | Limited>,
): Promise<T | Limited> {
  const tried = new Set([newcomer.id]);
  for (let attempts = 0; ; attempts += 1) {
    const outcome = await attempt();
    if (!isLimited(outcome) || deps.whenFull !== 'pause_idle' || attempts >= maxTries) return outcome;
    const { limit } = outcome.reached;
    if (limit === 'existing' || limit === 'existing_per_owner') return outcome;
    const ownerId = limit === 'running_per_owner' ? newcomer.ownerId : null;
    if (!(await makeRoom(deps, newcomer.id, ownerId, outcome.reached, tried))) return outcome;
  }
}

/** Freezes the longest idle sandbox that was not tried yet. Returns false if there is none. */
async function makeRoom(
  deps: AdmissionDeps,
  forId: string,
  ownerId: string | null,
  { limit, max }: LimitReached,
  tried: Set<string>,
): Promise<boolean> {
  const { store, reconciler, clock, answerWithinMs } = deps;
  const idle = (await store.longestIdle(ownerId, maxTries)).find(({ id }) => !tried.has(id));
  if (idle === undefined) return false;
  tried.add(idle.id);
  const reason = { code: 'made_room', forSandbox: forId, limit, max } as const;
  const paused = move(idle, 'pause', { now: clock.now(), reason, pauseKind: 'freeze' });
  if (paused !== null && (await writeMove(deps, idle, paused, 'skep'))) {
    await waitAtMost(clock, answerWithinMs, reconciler.reconcile(idle.id));
  }
  return true;
}

function isLimited(outcome: { readonly kind: string }): outcome is Limited {
  return outcome.kind === 'limit';
}
