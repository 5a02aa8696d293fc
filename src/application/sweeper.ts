import { isFailure } from '../domain/failure.ts';
import { decide, decideBlind } from '../domain/sandbox-next-step.ts';
import { absent, type SandboxFact } from '../domain/sandbox.ts';
import type { Clock } from '../ports/clock.ts';
import type { Logger } from '../ports/logger.ts';
import type { SandboxRuntime } from '../ports/sandbox-runtime.ts';
import type { Store } from '../ports/store.ts';
import type { SandboxDriver } from './sandboxes/driver.ts';
import type { Pool } from './sandboxes/pool.ts';

export interface ReconcilerParts {
  readonly store: Store;
  readonly runtime: SandboxRuntime;
  readonly sandboxDriver: SandboxDriver;
  readonly conversationDriver: { nudge(id: string): void };
  readonly pool: Pool;
  readonly clock: Clock;
  readonly logger: Logger;
  /** From the end of one sweep to the beginning of the next. */
  readonly sweepEveryMs: number;
  /** How long what no record owns is left alone. */
  readonly orphanGraceMs: number;
  /** How long a deleted record is remembered, so that deleting it again is still a success. */
  readonly rememberDeletedMs: number;
}

const scanSize = 500;

/**
 * Brings records and facts together, for all sandboxes and conversations: at start, now and then, and at once where the
 * runtime tells of an event. Level-triggered: it looks at what is, never at what it was told.
 */
export class Reconciler {
  readonly #parts: ReconcilerParts;
  readonly #orphansSince = new Map<string, number>();
  #cancelTimer: () => void = () => {};
  #unsubscribe: () => void = () => {};
  #sweeping: Promise<void> | null = null;
  #closed = false;

  constructor(parts: ReconcilerParts) {
    this.#parts = parts;
  }

  /** Begins with a sweep; answers when that is done. A runtime that does not answer does not keep it from going on. */
  async start(): Promise<void> {
    this.#unsubscribe = this.#parts.runtime.subscribe((id) => this.#parts.sandboxDriver.nudgeInstance(id));
    await this.#sweepAndGoOn();
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#cancelTimer();
    this.#unsubscribe();
    await this.#sweeping;
  }

  /** Goes once through everything, and sets in motion what is due; does not wait for that. */
  async sweep(): Promise<void> {
    const { store, clock, rememberDeletedMs } = this.#parts;
    // The facts first: whatever runs was written down before it was started, so that a fact without a record is an orphan.
    const facts = await this.#facts();
    const orphans = await this.#sweepSandboxes(facts);
    this.#parts.pool.nudge();
    await this.#sweepConversations();
    await this.#sweepOrphans(orphans);
    const removedBefore = clock.now() - rememberDeletedMs;
    await store.conversations.purge(removedBefore);
    await store.sandboxes.purge(removedBefore);
  }

  async #sweepAndGoOn(): Promise<void> {
    this.#sweeping = this.sweep().catch((error: unknown) => {
      const fields = isFailure(error) ? { code: error.code, reason: error.message } : { error };
      this.#parts.logger.warn(fields, 'sweep failed; the next one tries again');
    });
    await this.#sweeping;
    if (this.#closed) return;
    this.#cancelTimer = this.#parts.clock.after(this.#parts.sweepEveryMs, () => void this.#sweepAndGoOn());
  }

  /** What the runtime has, by instance; null where it does not answer. */
  async #facts(): Promise<ReadonlyMap<string, SandboxFact> | null> {
    try {
      return new Map((await this.#parts.runtime.list()).map((fact) => [fact.id, fact]));
    } catch (error) {
      if (!isFailure(error)) throw error;
      this.#parts.logger.warn({ code: error.code, reason: error.message }, 'the runtime does not tell what it has');
      return null;
    }
  }

  /** Answers with the facts that no record was found for. */
  async #sweepSandboxes(facts: ReadonlyMap<string, SandboxFact> | null): Promise<readonly SandboxFact[]> {
    const { store, sandboxDriver, clock } = this.#parts;
    const ownerless = new Map(facts ?? []);
    let after: string | null = null;
    do {
      const records = await store.sandboxes.scan(after, scanSize);
      for (const record of records) {
        const { id, instanceId } = record;
        ownerless.delete(instanceId);
        const now = clock.now();
        const step = facts === null ? decideBlind(record, now) : decide(record, facts.get(instanceId) ?? absent(instanceId), now);
        if (step.kind === 'none') sandboxDriver.watch(record);
        else sandboxDriver.nudge(id);
      }
      after = records.length === scanSize ? (records.at(-1)?.id ?? null) : null;
    } while (after !== null && !this.#closed);
    return [...ownerless.values()];
  }

  async #sweepOrphans(orphans: readonly SandboxFact[]): Promise<void> {
    const { store, runtime, clock, logger, orphanGraceMs } = this.#parts;
    const seen = new Set(orphans.map(({ id }) => id));
    for (const id of this.#orphansSince.keys()) if (!seen.has(id)) this.#orphansSince.delete(id);
    for (const id of seen) {
      const since = this.#orphansSince.get(id) ?? clock.now();
      this.#orphansSince.set(id, since);
      if (this.#closed || clock.now() - since < orphanGraceMs) continue;
      const record = await store.sandboxes.findByInstance(id);
      if (record !== null && record.removedAt === null) continue;
      try {
        await runtime.remove(id);
        this.#orphansSince.delete(id);
        logger.warn({ instance: id }, 'removed a sandbox that no record owns');
      } catch (error) {
        if (!isFailure(error)) throw error;
        logger.warn({ instance: id, code: error.code, reason: error.message }, 'a sandbox that no record owns is there still');
      }
    }
  }

  async #sweepConversations(): Promise<void> {
    const { store, conversationDriver } = this.#parts;
    let after: string | null = null;
    do {
      const records = await store.conversations.scanUnsettled(after, scanSize);
      for (const { id } of records) conversationDriver.nudge(id);
      after = records.length === scanSize ? (records.at(-1)?.id ?? null) : null;
    } while (after !== null && !this.#closed);
  }
}
