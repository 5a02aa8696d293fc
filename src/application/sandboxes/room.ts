import type { LimitReached } from '../../domain/sandbox-limits.ts';
import type { Sandbox } from '../../domain/sandbox.ts';
import { move } from '../../domain/sandbox-lifecycle.ts';
import type { Clock } from '../../ports/clock.ts';
import { within } from '../timers.ts';
import type { SandboxDriver } from './driver.ts';
import { writeMove, type WriteParts } from './writes.ts';

/** What happens where a limit on running sandboxes is reached: the newcomer is refused, or the longest idle one is frozen for it. */
export type WhenFull = 'refuse' | 'pause_idle';

export interface RoomParts extends WriteParts {
  readonly driver: SandboxDriver;
  readonly clock: Clock;
  readonly whenFull: WhenFull;
  readonly answerWithinMs: number;
}

type Limited = { readonly kind: 'limit'; readonly reached: LimitReached };

/** How many idle ones are looked at, and how often a start is tried again, before it is refused. */
const atMost = 20;

/**
 * Admits newcomers under the limits. Whether there is room only the store decides, with the write itself; so of several
 * who want the same room one gets it, and the others make some more or are refused.
 */
export class Room {
  readonly #parts: RoomParts;

  constructor(parts: RoomParts) {
    this.#parts = parts;
  }

  /** Tries to write the newcomer, and again after each that was frozen for it, where that is the policy. */
  async admit<T extends { readonly kind: string }>(newcomer: Pick<Sandbox, 'id' | 'ownerId'>, attempt: () => Promise<T | Limited>): Promise<T | Limited> {
    const tried = new Set([newcomer.id]);
    for (let attempts = 0; ; attempts += 1) {
      const outcome = await attempt();
      if (!isLimited(outcome) || this.#parts.whenFull === 'refuse' || attempts >= atMost) return outcome;
      const { limit } = outcome.reached;
      if (limit === 'existing' || limit === 'existing_per_owner') return outcome;
      const scope = limit === 'running_per_owner' ? newcomer.ownerId : null;
      if (!(await this.#freezeIdle(newcomer.id, scope, outcome.reached, tried))) return outcome;
    }
  }

  /** Freezes the longest idle one that was not tried yet; false when there is none. */
  async #freezeIdle(forId: string, ownerId: string | null, { limit, max }: LimitReached, tried: Set<string>): Promise<boolean> {
    const { store, driver, clock, answerWithinMs } = this.#parts;
    const idle = (await store.longestIdle(ownerId, atMost)).find(({ id }) => !tried.has(id));
    if (idle === undefined) return false;
    tried.add(idle.id);
    const detail = `frozen to make room for ${forId}: of those that run it was without activity the longest, and the limit ${limit} (${max}) is reached`;
    const paused = move(idle, 'pause', { now: clock.now(), detail, pauseKind: 'freeze' });
    if (paused !== null && (await writeMove(this.#parts, idle, paused, 'skep'))) {
      await within(clock, answerWithinMs, driver.settle(idle.id));
    }
    return true;
  }
}

function isLimited(outcome: { readonly kind: string }): outcome is Limited {
  return outcome.kind === 'limit';
}
