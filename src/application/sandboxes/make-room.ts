import { isWorking } from '../../domain/conversation-next-step.ts';
import { Failure } from '../../domain/failure.ts';
import type { Sandbox } from '../../domain/sandbox.ts';
import { move } from '../../domain/sandbox-lifecycle.ts';
import type { LimitReached } from '../../domain/sandbox-limits.ts';
import { waitAtMost } from '../timers.ts';
import type { SandboxesDeps } from './sandboxes.ts';
import { writeMove } from './sandbox-records.ts';

/** What happens if a limit on running sandboxes is reached: the newcomer is refused, or the longest idle one is paused for it. */
export type WhenFull = 'refuse' | 'pause_idle';

export type Limited = { readonly kind: 'limit'; readonly reached: LimitReached };

const maxTries = 20;

/** `minIdleMs`, if nothing else is configured. */
export const defaultMinIdleMs = 5 * 60_000;

/** A guess: when there is room again depends on what users pause and delete. */
const limitRetryAfterSeconds = 10;

export function limitFailure({ limit, max }: LimitReached): Failure {
  return new Failure('sandbox_limit_reached', { limit, max, retryAfterSeconds: limitRetryAfterSeconds });
}

/** At a limit, pauses an idle sandbox and tries again, if the policy says so. The store checks limits in the transaction of the write. */
export async function admit<T extends { readonly kind: string }>(
  deps: SandboxesDeps,
  newcomer: Pick<Sandbox, 'id' | 'ownerId'>,
  attempt: () => Promise<T | Limited>,
): Promise<T | Limited> {
  const tried = new Set([newcomer.id]);
  for (let attempts = 0; ; attempts += 1) {
    const outcome = await attempt();
    if (!isLimited(outcome) || deps.whenFull !== 'pause_idle' || attempts >= maxTries) return outcome;
    const { limit } = outcome.reached;
    if (limit === 'existing' || limit === 'existing_per_owner' || limit === 'disk') return outcome;
    const ownerId = limit === 'running_per_owner' ? newcomer.ownerId : null;
    if (!(await makeRoom(deps, newcomer.id, ownerId, outcome.reached, tried))) return outcome;
  }
}

/** Pauses the longest idle sandbox in which nothing works. Returns false if there is none, or the runtime takes its time. */
async function makeRoom(
  deps: SandboxesDeps,
  forId: string,
  ownerId: string | null,
  { limit, max }: LimitReached,
  tried: Set<string>,
): Promise<boolean> {
  const { runtime, reconciler, clock, answerWithinMs } = deps;
  const idle = await longestIdle(deps, ownerId, tried);
  if (idle === null) return false;
  const reason = { code: 'made_room', forSandbox: forId, limit, max } as const;
  const paused = move(idle, 'pause', 'skep', { now: clock.now(), reason, pauseKind: runtime.capabilities.freeze ? 'freeze' : 'stop' });
  if (paused !== null && (await writeMove(deps, idle, paused, 'skep'))) {
    return (await waitAtMost(clock, answerWithinMs, reconciler.reconcile(idle.id))) !== null;
  }
  return true;
}

async function longestIdle(
  { store, conversations, executions, clock, minIdleMs }: SandboxesDeps, ownerId: string | null, tried: Set<string>,
): Promise<Sandbox | null> {
  for (const sandbox of await store.longestIdle(ownerId, maxTries)) {
    if (tried.has(sandbox.id) || clock.now() - sandbox.lastActiveAt < minIdleMs) continue;
    tried.add(sandbox.id);
    if (!(await conversations.findUsing(sandbox.id)).some(isWorking) && !(await executions.keepsAwake(sandbox))) return sandbox;
  }
  return null;
}

function isLimited(outcome: { readonly kind: string }): outcome is Limited {
  return outcome.kind === 'limit';
}
