import { isFailure, logFieldsOf } from '../../domain/failure.ts';
import type { Reason } from '../../domain/reason.ts';
import { markDeleted } from '../../domain/sandbox-lifecycle.ts';
import {
  claimMember, newPoolMember, planPool, poolFingerprint, type PooledSpec, type PoolMember,
} from '../../domain/pool-plan.ts';
import { isPooled, type PlannedSandbox, type Sandbox, type SandboxStatus, type ObservedSandbox } from '../../domain/sandbox.ts';
import { BackOff, waitAtMost } from '../timers.ts';
import { KeyedWorker } from '../keyed-worker.ts';
import type { DiskWatch } from './disk-watch.ts';
import type { SandboxDeps } from './sandboxes.ts';
import type { SandboxReconciler } from './sandbox-reconciler.ts';
import type { SandboxSpecs } from './sandbox-specs.ts';

/** The state of a spec's pool. */
export interface PoolReport {
  readonly specId: string;
  readonly target: number;
  readonly running: number;
  readonly starting: number;
  /** How many starts of this process got a member (hits) or found none (misses). */
  readonly hits: number;
  readonly misses: number;
  /** Why a member failed last. Null after a later member has run. */
  readonly lastFailure: Reason | null;
}

interface SandboxPoolDeps extends SandboxDeps {
  readonly specs: SandboxSpecs;
  readonly reconciler: SandboxReconciler;
  readonly diskWatch: Pick<DiskWatch, 'allowsPools'>;
  /** How many members start at a time, over all specs and processes. */
  readonly startsAtOnce: number;
}

/** How long a start waits for the runtime's report that a member runs. If the runtime does not answer, the start uses no member. */
const inspectWithinMs = 2000;

/** Keeps sandboxes running for later starts, and gives them to owners. The store decides which members exist and who gets one. */
export class SandboxPool {
  readonly #deps: SandboxPoolDeps;
  /** Members that a start of this process tries now. Other starts skip them, because their claim would fail. */
  readonly #tried = new Set<string>();
  readonly #backOff: BackOff;
  /** By the id of the spec. */
  readonly #hits = new Map<string, number>();
  readonly #misses = new Map<string, number>();
  /** By the fingerprint. */
  readonly #failures = new Map<string, Reason>();
  readonly #upkeep: KeyedWorker<void>;
  readonly #unsubscribe: () => void;
  #cancelRetry: () => void = () => {};
  /** `unchecked`: a member may already have an owner, because the store may be older than the runtime. */
  #state: 'unchecked' | 'open' | 'closed' = 'unchecked';

  constructor(deps: SandboxPoolDeps) {
    this.#deps = deps;
    this.#backOff = new BackOff(deps.clock);
    this.#upkeep = new KeyedWorker(() => this.#reconcile());
    this.#unsubscribe = deps.reconciler.onReconciled(({ sandbox }) => {
      if (sandbox !== null && isPooled(sandbox)) this.enqueue();
    });
  }

  get isOpen(): boolean {
    return this.#state === 'open';
  }

  /** Must be called when no member can have an owner. Before, no member is given to an owner, added or removed. */
  open(): void {
    if (this.#state === 'unchecked') this.#state = 'open';
  }

  /**
   * Yields the running members, each with the record for its new owner. Yields none if the planned sandbox does not match the pool, or the
   * pool is not open.
   */
  async *candidates(planned: PlannedSandbox): AsyncGenerator<{ member: Sandbox; sandbox: Sandbox }, void> {
    const pooled = this.#deps.specs.pooled.get(planned.spec.id);
    if (pooled === undefined || !this.isOpen) return;
    const { fingerprint } = pooled;
    if (planned.spec !== pooled.spec && poolFingerprint(planned.spec) !== fingerprint) return;
    const members = await this.#deps.store.sandboxes.pooled();
    const running = members.filter((member) => member.fingerprint === fingerprint && member.sandbox.status === 'RUNNING');
    for (const { sandbox: member } of running) {
      if (this.#tried.has(member.id)) continue;
      this.#tried.add(member.id);
      try {
        const observed = await this.#inspect(member);
        if (observed === null) return;
        if (observed.state === 'running') yield { member, sandbox: claimMember(member, planned, observed.exposedUrls) };
        else this.#deps.reconciler.enqueue(member.id);
      } finally {
        this.#tried.delete(member.id);
      }
    }
    this.#misses.set(planned.spec.id, (this.#misses.get(planned.spec.id) ?? 0) + 1);
  }

  /** Must be called after a candidate was given to its owner. */
  claimed(specId: string): void {
    this.#hits.set(specId, (this.#hits.get(specId) ?? 0) + 1);
    this.enqueue();
  }

  async report(): Promise<readonly PoolReport[]> {
    const members = await this.#deps.store.sandboxes.pooled();
    return [...this.#deps.specs.pooled.values()].map(({ spec: { id, pool }, fingerprint }) => {
      const count = (status: SandboxStatus): number =>
        members.filter((member) => member.fingerprint === fingerprint && member.sandbox.status === status).length;
      return {
        specId: id, target: pool.size, running: count('RUNNING'), starting: count('STARTING'),
        hits: this.#hits.get(id) ?? 0, misses: this.#misses.get(id) ?? 0, lastFailure: this.#failures.get(fingerprint) ?? null,
      };
    });
  }

  /** Fills the pools in the background, if they are open. */
  enqueue(): void {
    if (!this.isOpen) return;
    this.#upkeep.run('pools').catch((error: unknown) => {
      this.#deps.logger.warn(logFieldsOf(error), 'the pools could not be filled; the next sweep tries again');
    });
  }

  async close(): Promise<void> {
    this.#state = 'closed';
    this.#cancelRetry();
    this.#unsubscribe();
    await this.#upkeep.drain();
  }

  /** Returns null if the runtime does not answer in time. */
  async #inspect({ instanceId }: Sandbox): Promise<ObservedSandbox | null> {
    try {
      return await waitAtMost(this.#deps.clock, inspectWithinMs, this.#deps.runtime.inspect(instanceId));
    } catch (error) {
      if (isFailure(error)) return null;
      throw error;
    }
  }

  async #reconcile(): Promise<void> {
    const { store, specs, clock, diskWatch, startsAtOnce } = this.#deps;
    const members = await store.sandboxes.pooled();
    this.#noteOutcomes(members);
    const wanted = [...specs.pooled.values()];
    if (members.length === 0 && wanted.length === 0) return;
    const backOffs = wanted.map(({ fingerprint }) => [fingerprint, this.#backOff.waitMs(fingerprint)] as const);
    const waits = backOffs.filter(([, ms]) => ms > 0);
    const blockedFingerprints = new Set(waits.map(([fingerprint]) => fingerprint));
    const plan = planPool(members, wanted, { atOnce: diskWatch.allowsPools ? startsAtOnce : 0, blockedFingerprints, now: clock.now() });
    for (const { sandbox, reason } of plan.remove) await this.#remove(sandbox, reason);
    for (const spec of plan.add) await this.#add(spec);
    this.#retryIn(Math.min(...waits.map(([, ms]) => ms)));
  }

  /** Notes for each spec whether its members start or fail. */
  #noteOutcomes(members: readonly PoolMember[]): void {
    const failed = members.filter(({ sandbox }) => sandbox.status === 'ERROR');
    for (const { sandbox, fingerprint } of members) {
      if (sandbox.status !== 'RUNNING') continue;
      this.#backOff.succeeded(fingerprint, sandbox.statusSince);
      if (this.#backOff.waitMs(fingerprint) === 0) this.#failures.delete(fingerprint);
    }
    for (const { sandbox, fingerprint } of failed) if (sandbox.statusReason !== null) this.#failures.set(fingerprint, sandbox.statusReason);
    for (const fingerprint of new Set(failed.map(({ fingerprint }) => fingerprint))) this.#backOff.failed(fingerprint);
  }

  async #remove(member: Sandbox, reason: Reason): Promise<void> {
    const { store, reconciler, clock, logger } = this.#deps;
    if (!this.isOpen) return;
    const { kind } = await store.sandboxes.replace(markDeleted(member, reason, clock.now()));
    if (kind === 'stale') return;
    logger.info({ sandbox: member.id, spec: member.spec.id, reason }, 'a pool member was removed');
    void reconciler.interrupt(member.id).catch(() => reconciler.enqueue(member.id));
  }

  async #add({ spec, fingerprint }: PooledSpec): Promise<void> {
    const { store, reconciler, clock, random } = this.#deps;
    if (!this.isOpen) return;
    const member = newPoolMember({ id: random.id('sb'), spec, sessionApiKey: random.secret(), now: clock.now() });
    const { kind } = await store.sandboxes.insertPooled(member, fingerprint, spec.pool.size);
    if (kind === 'inserted') reconciler.enqueue(member.id);
  }

  #retryIn(ms: number): void {
    this.#cancelRetry();
    if (Number.isFinite(ms) && this.isOpen) this.#cancelRetry = this.#deps.clock.after(ms, () => this.enqueue());
  }
}
