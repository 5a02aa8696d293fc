import { movedEvents } from '../../domain/event.ts';
import { Failure } from '../../domain/failure.ts';
import { move } from '../../domain/sandbox-lifecycle.ts';
import type { LimitReached, SandboxLimits } from '../../domain/sandbox-limits.ts';
import { newSandbox, type NewSandbox, type Sandbox } from '../../domain/sandbox.ts';
import type { Clock } from '../../ports/clock.ts';
import type { IdempotencyClaim, ClaimOutcome } from '../../ports/idempotency-claim.ts';
import type { Random } from '../../ports/random.ts';
import type { InsertSandboxOutcome, ReplaceOutcome } from '../../ports/sandbox-store.ts';
import { waitAtMost } from '../timers.ts';
import type { SandboxPool } from './sandbox-pool.ts';
import type { SandboxReconciler } from './sandbox-reconciler.ts';
import { logMove, writeMove, type WriteDeps } from './sandbox-writes.ts';

interface AdmissionDeps extends WriteDeps {
  readonly driver: SandboxReconciler;
  readonly pool: SandboxPool;
  readonly limits: SandboxLimits;
  readonly clock: Clock;
  readonly random: Random;
}

type Limited = { readonly kind: 'limit'; readonly reached: LimitReached };

type Started = { readonly kind: 'started'; readonly sandbox: Sandbox } | Limited | ClaimOutcome;

/** Writes the owner's new sandbox, from a pool where one can be had, and has it driven. */
export async function startOnce(deps: AdmissionDeps, asked: Omit<NewSandbox, 'sessionApiKey'>, claim?: IdempotencyClaim): Promise<Started> {
  const { store, pool, limits, random } = deps;
  const warm = await pool.claim(asked, async (sandbox, member) => {
    const outcome = await store.claimFromPool(sandbox, member, limits, claim, movedEvents(null, sandbox, 'user'));
    return outcome.kind === 'stale' ? outcome : started(deps, sandbox, outcome);
  });
  if (warm !== null && warm.kind !== 'stale') {
    if (warm.kind === 'started') pool.enqueue();
    return warm;
  }
  const cold = newSandbox({ ...asked, sessionApiKey: random.secret() });
  return started(deps, cold, await store.insert(cold, limits, claim, movedEvents(null, cold, 'user')));
}

/** Writes that the owner's paused sandbox is to run again. */
export async function resumeOnce({ store, limits, clock, logger }: AdmissionDeps, sandbox: Sandbox): Promise<ReplaceOutcome | Limited> {
  const next = move(sandbox, 'resume', { now: clock.now(), detail: 'resumed by its owner' });
  if (next === null) return { kind: 'stale' };
  const outcome = await store.admit(next, limits, movedEvents(sandbox, next, 'user'));
  if (outcome.kind === 'replaced') logMove(logger, sandbox, next, 'user');
  return outcome;
}

function started({ driver, logger }: AdmissionDeps, sandbox: Sandbox, outcome: InsertSandboxOutcome): Started {
  if (outcome.kind !== 'inserted') return outcome;
  logMove(logger, null, sandbox, 'user');
  driver.enqueue(sandbox.id);
  return { kind: 'started', sandbox };
}

/** What happens where a limit on running sandboxes is reached: the newcomer is refused, or the longest idle one is frozen for it. */
export type WhenFull = 'refuse' | 'pause_idle';

interface RoomDeps extends WriteDeps {
  readonly driver: SandboxReconciler;
  readonly clock: Clock;
  readonly whenFull: WhenFull;
  readonly answerWithinMs: number;
}

/** How many idle ones are looked at, and how often a start is tried again, before it is refused. */
const atMost = 20;

/**
 * Admits newcomers under the limits. Whether there is room only the store decides, with the write itself; so of several
 * who want the same room one gets it, and the others make some more or are refused.
 */
export class Room {
  readonly #deps: RoomDeps;

  constructor(deps: RoomDeps) {
    this.#deps = deps;
  }

  /** Tries to write the newcomer, and again after each that was frozen for it, where that is the policy. */
  async admit<T extends { readonly kind: string }>(newcomer: Pick<Sandbox, 'id' | 'ownerId'>, attempt: () => Promise<T | Limited>): Promise<T | Limited> {
    const tried = new Set([newcomer.id]);
    for (let attempts = 0; ; attempts += 1) {
      const outcome = await attempt();
      if (!isLimited(outcome) || this.#deps.whenFull === 'refuse' || attempts >= atMost) return outcome;
      const { limit } = outcome.reached;
      if (limit === 'existing' || limit === 'existing_per_owner') return outcome;
      const scope = limit === 'running_per_owner' ? newcomer.ownerId : null;
      if (!(await this.#freezeIdle(newcomer.id, scope, outcome.reached, tried))) return outcome;
    }
  }

  /** Freezes the longest idle one that was not tried yet; false when there is none. */
  async #freezeIdle(forId: string, ownerId: string | null, { limit, max }: LimitReached, tried: Set<string>): Promise<boolean> {
    const { store, driver, clock, answerWithinMs } = this.#deps;
    const idle = (await store.longestIdle(ownerId, atMost)).find(({ id }) => !tried.has(id));
    if (idle === undefined) return false;
    tried.add(idle.id);
    const detail = `frozen to make room for ${forId}: of those that run it was without activity the longest, and the limit ${limit} (${max}) is reached`;
    const paused = move(idle, 'pause', { now: clock.now(), detail, pauseKind: 'freeze' });
    if (paused !== null && (await writeMove(this.#deps, idle, paused, 'skep'))) {
      await waitAtMost(clock, answerWithinMs, driver.reconcile(idle.id));
    }
    return true;
  }
}

function isLimited(outcome: { readonly kind: string }): outcome is Limited {
  return outcome.kind === 'limit';
}

/** Room appears when somebody pauses or deletes a sandbox, which nobody can foretell: a modest guess. */
const limitRetryAfterSeconds = 10;

export function limitFailure({ limit, max }: LimitReached): Failure {
  return new Failure('sandbox_limit_reached', { limit, max, retryAfterSeconds: limitRetryAfterSeconds });
}

export function unknownSpec(specId: string | null): Failure {
  const message = specId === null ? 'The deployment has no sandbox spec' : `There is no sandbox spec ${JSON.stringify(specId)}`;
  return new Failure('invalid_request', { problems: [{ argument: 'sandboxSpecId', code: 'unknown_sandbox_spec', message }] });
}
