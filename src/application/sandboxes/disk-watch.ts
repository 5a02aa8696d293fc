import { isUnsettled } from '../../domain/conversation-next-step.ts';
import { type DiskPressure, diskPressure, type DiskSpace, deletionCandidates } from '../../domain/disk-pressure.ts';
import { markDeleted } from '../../domain/sandbox-lifecycle.ts';
import type { Sandbox } from '../../domain/sandbox.ts';
import { answerOrNull } from '../timers.ts';
import type { SandboxDeps } from './sandboxes.ts';
import { findIntactUsers, writeSandbox } from './sandbox-records.ts';
import type { SandboxReconciler } from './sandbox-reconciler.ts';

interface DiskWatchDeps extends SandboxDeps {
  readonly reconciler: SandboxReconciler;
  /** How much of the runtime's disk may be used. 100: the whole disk. */
  readonly diskUsedPercent: number;
}

/** How many sandboxes are deleted at a time. Each frees its space only after its removal, so more at once could delete too many. */
const deletionsAtOnce = 3;

/** Pools are not filled for this long after the last pressure. Otherwise members would be created and deleted again and again. */
const poolsAfterMs = 5 * 60_000;

/** Checks at each sweep whether the runtime's disk is too full, and deletes expendable sandboxes to free space. */
export class DiskWatch {
  readonly #deps: DiskWatchDeps;
  #space: DiskSpace | null = null;
  #lastPressureAt = -Infinity;

  constructor(deps: DiskWatchDeps) {
    this.#deps = deps;
  }

  /** The disk space at the last sweep. Null if it is unknown. */
  get space(): DiskSpace | null {
    return this.#space;
  }

  /** Null if there is no pressure or the space is unknown. */
  get pressure(): DiskPressure | null {
    return this.#space === null ? null : diskPressure(this.#space, this.#deps.diskUsedPercent);
  }

  /** Returns false under pressure, and for some time after it. */
  get allowsPools(): boolean {
    if (this.pressure !== null) return false;
    const passedMs = this.#deps.clock.now() - this.#lastPressureAt;
    // After the clock was set back, the delay would last for the size of that jump.
    return passedMs < 0 || passedMs >= poolsAfterMs;
  }

  /** Gets the disk space from the runtime. Returns as soon as the signal fires. */
  async update(signal: AbortSignal): Promise<void> {
    const { runtime, clock, logger } = this.#deps;
    const { pressure: before } = this;
    this.#space = await answerOrNull(runtime.diskSpace(), signal, logger, 'the disk usage could not be read from the runtime');
    const { pressure } = this;
    if (pressure !== null) this.#lastPressureAt = clock.now();
    if (before === null && pressure !== null) logger.warn({ reason: pressure }, 'the disk is too full to start sandboxes');
    if (before !== null && pressure === null) logger.info({}, 'the disk has space for sandboxes again');
  }

  /** Under pressure, deletes a few sandboxes. Takes all that exist. Does not wait until they are removed. */
  async deleteUnderPressure(sandboxes: readonly Sandbox[]): Promise<void> {
    const { clock, reconciler } = this.#deps;
    const { pressure: reason } = this;
    if (reason === null) return;
    const beingRemoved = sandboxes.filter(({ deletedAt, removedAt, statusReason }) =>
      deletedAt !== null && removedAt === null && statusReason?.code === 'disk_pressure');
    let open = deletionsAtOnce - beingRemoved.length;
    for (const sandbox of deletionCandidates(sandboxes, clock.now())) {
      if (open <= 0) return;
      // A conversation may have unfinished work in this sandbox.
      if ((await findIntactUsers(this.#deps, sandbox.id))?.some(isUnsettled) ?? true) continue;
      open -= 1;
      // Somebody else wrote first: another process that frees space, or a resumption.
      if (!(await writeSandbox(this.#deps, sandbox, markDeleted(sandbox, reason, clock.now()), 'skep'))) continue;
      void reconciler.interrupt(sandbox.id).catch(() => reconciler.enqueue(sandbox.id));
    }
  }
}
