import { isInScope, type OwnerScope } from '../../domain/principal.ts';
import { isPooled, type Sandbox } from '../../domain/sandbox.ts';
import type { Clock } from '../../ports/clock.ts';

/** The maximum age and number of the starts that count. */
const windowMs = 3_600_000;
const maxStarts = 2000;

interface Start {
  readonly ownerId: string;
  readonly at: number;
  /** Milliseconds from the request until RUNNING. Null if the start failed. */
  readonly ms: number | null;
  readonly isFromPool: boolean;
}

export interface StartSummary {
  /** Earlier starts are not in the summary. */
  readonly since: number;
  readonly succeeded: number;
  readonly failed: number;
  /** How many of the successful ones came from a pool. */
  readonly fromPool: number;
  /** Duration of successful starts, in milliseconds. Null if there are none. */
  readonly p50Ms: number | null;
  readonly p95Ms: number | null;
}

/** Measures how long the starts of this process take. */
export class StartStatistics {
  readonly #clock: Clock;
  readonly #openedAt: number;
  #starts: Start[] = [];
  /** The time of the last start that was left out because there are too many. */
  #droppedAt = -Infinity;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#openedAt = clock.now();
  }

  /** Records the start, if this write of a sandbox ends one. */
  note(from: Sandbox | null, to: Sandbox): void {
    const isStart = from === null || from.status === 'STARTING';
    if (!isStart || isPooled(to) || to.deletedAt !== null || (to.status !== 'RUNNING' && to.status !== 'ERROR')) return;
    const at = this.#clock.now();
    const ms = to.status === 'RUNNING' ? Math.max(0, at - to.createdAt) : null;
    this.#starts.push({ ownerId: to.ownerId, at, ms, isFromPool: from === null });
    if (this.#starts.length > maxStarts) this.#droppedAt = this.#starts.shift()?.at ?? at;
  }

  summary(scope: OwnerScope): StartSummary {
    const since = Math.max(this.#openedAt, this.#clock.now() - windowMs, this.#droppedAt + 1);
    this.#starts = this.#starts.filter(({ at }) => at >= since);
    const seen = this.#starts.filter(({ ownerId }) => isInScope(ownerId, scope));
    const times = seen.flatMap(({ ms }) => (ms === null ? [] : [ms])).toSorted((a, b) => a - b);
    return {
      since,
      succeeded: times.length,
      failed: seen.length - times.length,
      fromPool: seen.filter(({ isFromPool }) => isFromPool).length,
      p50Ms: percentile(times, 50),
      p95Ms: percentile(times, 95),
    };
  }
}

/** Returns the smallest value that is at least as large as `percent` % of the sorted values. Null if there are none. */
function percentile(sorted: readonly number[], percent: number): number | null {
  return sorted[Math.ceil((percent / 100) * sorted.length) - 1] ?? null;
}
