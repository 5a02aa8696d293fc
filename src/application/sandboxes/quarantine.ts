import { sandboxMovedEvents } from '../../domain/event.ts';
import { isDamagedRecord, isFailure, logFieldsOf } from '../../domain/failure.ts';
import { putInQuarantine, newQuarantinedSandbox } from '../../domain/quarantine.ts';
import { unlimited } from '../../domain/admission-limits.ts';
import { isPooled, type ObservedSandbox, type Sandbox } from '../../domain/sandbox.ts';
import { raceSignal } from '../../ports/abort-signals.ts';
import type { SandboxDeps } from './sandboxes.ts';
import type { SandboxReconciler } from './sandbox-reconciler.ts';

/** `orphanGraceMs`, if nothing else is configured. */
export const defaultOrphanGraceMs = 10_000;

interface QuarantineDeps extends SandboxDeps {
  readonly reconciler: SandboxReconciler;
  /** How long a sandbox of the runtime may have no record before it is removed or put in quarantine. */
  readonly orphanGraceMs: number;
  /** How long a sandbox that the store does not know is kept. 0: not at all. */
  readonly quarantineForMs: number;
}

/**
 * Handles the sandboxes of the runtime that have no record. Removes what is left of a deleted sandbox. Puts a sandbox that the store never
 * knew in quarantine, because the store may be older than the sandbox. It gets a record, so the reconciler stops it, the idle policy
 * deletes it after its time, and an administrator can see, adopt and delete it.
 */
export class Quarantine {
  readonly #deps: QuarantineDeps;
  readonly #orphansSince = new Map<string, number>();

  constructor(deps: QuarantineDeps) {
    this.#deps = deps;
  }

  /**
   * Must be called before the pool opens. If the store is older than the runtime, a member may already have an owner. Then all members are
   * put in quarantine.
   */
  async quarantineStalePool(orphans: readonly ObservedSandbox[]): Promise<void> {
    const { store, quarantineForMs } = this.#deps;
    if (quarantineForMs === 0 || !(await this.#hasUnknownSandbox(orphans))) return;
    // Only the members that exist now: another process may add new ones all the time.
    for (const { sandbox } of await store.sandboxes.pooled()) await this.#quarantineMember(sandbox);
  }

  async #quarantineMember({ id }: Sandbox): Promise<void> {
    const { store, clock, logger, reconciler, quarantineForMs: keptForMs } = this.#deps;
    // The reconciler may write the member at the same time. Then the member is read again.
    for (;;) {
      const member = await store.sandboxes.find(id);
      if (member === null || !isPooled(member) || member.deletedAt !== null) return;
      const to = putInQuarantine(member, { keptForMs, specId: member.spec.id, ownerId: null }, clock.now());
      if ((await store.sandboxes.replace(to)).kind === 'stale') continue;
      logger.warn({ sandbox: id }, 'put a pool member in quarantine, because the store is older than the runtime');
      reconciler.enqueue(id);
      return;
    }
  }

  async #hasUnknownSandbox(orphans: readonly ObservedSandbox[]): Promise<boolean> {
    for (const { id } of orphans) {
      try {
        if ((await this.#deps.store.sandboxes.findByInstance(id)) === null) return true;
      } catch (error) {
        if (!isDamagedRecord(error)) throw error;
      }
    }
    return false;
  }

  /** Handles the orphans. Logs failures of the runtime; the next sweep tries again. Rejects as soon as the signal fires. */
  async sweep(orphans: readonly ObservedSandbox[], closing: AbortSignal): Promise<void> {
    const { clock, logger, orphanGraceMs } = this.#deps;
    const seen = new Set(orphans.map(({ id }) => id));
    for (const id of this.#orphansSince.keys()) if (!seen.has(id)) this.#orphansSince.delete(id);
    for (const id of seen) {
      const now = clock.now();
      // The clock can be set back.
      const since = Math.min(this.#orphansSince.get(id) ?? now, now);
      this.#orphansSince.set(id, since);
      if (closing.aborted || now - since < orphanGraceMs) continue;
      try {
        await this.#sweepOne(id, closing);
      } catch (error) {
        // A sandbox with a damaged record is left alone.
        if (!isFailure(error) || (error.code === 'store_unavailable' && !isDamagedRecord(error))) throw error;
        logger.warn({ instance: id, ...logFieldsOf(error) }, 'a sandbox without a record could not be handled');
      }
    }
  }

  async #sweepOne(id: string, closing: AbortSignal): Promise<void> {
    const { store, runtime, logger, quarantineForMs } = this.#deps;
    const record = await store.sandboxes.findByInstance(id);
    if (record !== null && record.removedAt === null) return;
    if (record === null && quarantineForMs > 0) {
      await this.#add(id, closing);
    } else {
      await raceSignal(runtime.remove(id), closing);
      logger.warn({ instance: id }, 'removed a sandbox without a record');
    }
    this.#orphansSince.delete(id);
  }

  async #add(id: string, closing: AbortSignal): Promise<void> {
    const { store, runtime, reconciler, clock, random, logger, quarantineForMs: keptForMs } = this.#deps;
    const { specId = null, ownerId = null } = (await raceSignal(runtime.keptLaunch(id), closing)) ?? {};
    const record = newQuarantinedSandbox({ id, sessionApiKey: random.secret(), now: clock.now() }, { keptForMs, specId, ownerId });
    await store.sandboxes.insert(record, unlimited, undefined, sandboxMovedEvents(null, record, 'skep'));
    logger.warn({ sandbox: id, reason: record.statusReason }, 'put a sandbox without a record in quarantine');
    reconciler.enqueue(id);
  }
}
