import { isFailure } from '../../domain/failure.ts';
import { markDeleted } from '../../domain/sandbox-lifecycle.ts';
import { claimedFromPool, newPoolMember, planPool, type PooledSpec, type PoolPlan } from '../../domain/sandbox-pool.ts';
import { isPooled, type NewSandbox, type Sandbox, type ObservedSandbox } from '../../domain/sandbox.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Logger } from '../../ports/logger.ts';
import type { Random } from '../../ports/random.ts';
import type { SandboxRuntime } from '../../ports/sandbox-runtime.ts';
import type { PooledSandbox, SandboxStore } from '../../ports/sandbox-store.ts';
import { BackOff } from '../back-off.ts';
import { KeyedWorker } from '../keyed-worker.ts';
import type { SandboxReconciler, Reconciled } from './sandbox-reconciler.ts';
import type { SandboxSpecs } from './sandbox-specs.ts';

interface SandboxPoolDeps {
  readonly store: SandboxStore;
  readonly runtime: SandboxRuntime;
  readonly specs: SandboxSpecs;
  readonly reconciler: SandboxReconciler;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** How many members start at a time, over all specs and processes: what bounds the rate of the refill. */
  readonly startsAtOnce: number;
}

/** So many members are tried before a start goes without: where so many are taken or dead, others hardly fare better. */
const tries = 8;

/**
 * Keeps sandboxes running for those who will ask, and hands them out. Which there are is in the store alone, and so is
 * whose one becomes; what this holds in memory only saves work.
 */
export class SandboxPool {
  readonly #deps: SandboxPoolDeps;
  readonly #members: PoolMembers;
  readonly #backOff: BackOff;
  readonly #upkeep: KeyedWorker<void>;
  readonly #unsubscribe: () => void;
  #cancelRetry: () => void = () => {};
  #closed = false;

  constructor(deps: SandboxPoolDeps) {
    this.#deps = deps;
    this.#members = new PoolMembers(deps.store);
    this.#backOff = new BackOff(deps.clock);
    this.#upkeep = new KeyedWorker(() => this.#keep());
    this.#unsubscribe = deps.reconciler.onReconciled((settled) => this.#noticed(settled));
  }

  /**
   * Tries members of the spec's pool, each seen running just now, until `write` has made one the owner's; null where none
   * can be had. `write` is handed the owner's record and the member that it comes from.
   */
  async claim<T extends { readonly kind: string }>(
    asked: Omit<NewSandbox, 'sessionApiKey'>,
    write: (sandbox: Sandbox, member: Sandbox) => Promise<T>,
  ): Promise<T | null> {
    const fingerprint = this.#deps.specs.pooled(asked.spec.id)?.fingerprint;
    if (fingerprint === undefined) return null;
    for (let tried = 0; tried < tries; tried += 1) {
      const member = await this.#members.take(fingerprint);
      if (member === null) break;
      try {
        const fact = await this.#inspect(member.sandbox);
        if (fact === null) break;
        if (fact.state !== 'running') {
          this.#deps.reconciler.enqueue(member.sandbox.id);
          continue;
        }
        const outcome = await write(claimedFromPool(member.sandbox, asked, fact.exposedUrls), member.sandbox);
        if (outcome.kind !== 'stale') return outcome;
        this.#members.forget();
      } finally {
        this.#members.giveBack(member);
      }
    }
    return null;
  }

  /** Sees to it that the pools have what they lack, without anyone waiting. */
  enqueue(): void {
    if (this.#closed) return;
    this.#upkeep.run('pools').catch((error: unknown) => {
      const fields = isFailure(error) ? { code: error.code, reason: error.message } : { error };
      this.#deps.logger.warn(fields, 'the pools were not seen to; the next sweep tries again');
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#cancelRetry();
    this.#unsubscribe();
    await this.#upkeep.drain();
  }

  /** Where the runtime does not tell, a start goes without the pool. */
  async #inspect({ instanceId }: Sandbox): Promise<ObservedSandbox | null> {
    try {
      return await this.#deps.runtime.inspect(instanceId);
    } catch (error) {
      if (isFailure(error)) return null;
      throw error;
    }
  }

  #noticed({ sandbox }: Reconciled): void {
    if (sandbox !== null && isPooled(sandbox)) this.enqueue();
  }

  async #keep(): Promise<void> {
    const { store, specs, clock, startsAtOnce } = this.#deps;
    const members = await store.pooled();
    this.#members.learn(members);
    this.#judge(members);
    const wanted = specs.allPooled();
    if (members.length === 0 && wanted.length === 0) return;
    const waits = wanted.map(({ fingerprint }) => [fingerprint, this.#backOff.waitMs(fingerprint)] as const).filter(([, ms]) => ms > 0);
    const held = new Set(waits.map(([fingerprint]) => fingerprint));
    const plan = planPool(members, wanted, { atOnce: startsAtOnce, held, now: clock.now() });
    await this.#carryOut(plan);
    this.#retryIn(Math.min(...waits.map(([, ms]) => ms)));
  }

  /** Notes which specs start well, and which don't. */
  #judge(members: readonly PooledSandbox[]): void {
    const failed = members.filter(({ sandbox }) => sandbox.status === 'ERROR').map(({ fingerprint }) => fingerprint);
    for (const { sandbox, fingerprint } of members) if (sandbox.status === 'RUNNING') this.#backOff.succeeded(fingerprint, sandbox.statusSince);
    for (const fingerprint of new Set(failed)) this.#backOff.failed(fingerprint);
  }

  async #carryOut({ remove, add }: PoolPlan): Promise<void> {
    for (const { sandbox, reason } of remove) {
      if (this.#closed) return;
      await this.#remove(sandbox, reason);
    }
    for (const spec of add) {
      if (this.#closed) return;
      await this.#add(spec);
    }
  }

  async #remove(member: Sandbox, reason: string): Promise<void> {
    const { store, reconciler, clock, logger } = this.#deps;
    const { kind } = await store.replace(markDeleted(member, reason, clock.now()));
    if (kind === 'stale') return;
    logger.info({ sandbox: member.id, spec: member.spec.id, detail: reason }, 'removed from its pool');
    void reconciler.interrupt(member.id).catch(() => reconciler.enqueue(member.id));
  }

  async #add({ spec, fingerprint }: PooledSpec): Promise<void> {
    const { store, reconciler, clock, random } = this.#deps;
    const member = newPoolMember({ id: random.id('sb'), spec, sessionApiKey: random.secret(), now: clock.now() });
    const { kind } = await store.insertPooled(member, fingerprint, spec.pool.size);
    if (kind === 'inserted') reconciler.enqueue(member.id);
  }

  #retryIn(ms: number): void {
    this.#cancelRetry();
    if (Number.isFinite(ms) && !this.#closed) this.#cancelRetry = this.#deps.clock.after(ms, () => this.enqueue());
  }
}

/**
 * The running members of pools that this process knows of and nobody here is about to take. They are hints: whether one
 * can be had, the store decides.
 */
export class PoolMembers {
  readonly #store: SandboxStore;
  readonly #taken = new Set<string>();
  #known: PooledSandbox[] = [];
  #reading: Promise<void> | null = null;

  constructor(store: SandboxStore) {
    this.#store = store;
  }

  /** Remembers what the store has said. */
  learn(members: readonly PooledSandbox[]): void {
    this.#known = members.filter(({ sandbox }) => sandbox.status === 'RUNNING');
  }

  /** Whatever is known may be out of date. */
  forget(): void {
    this.#known = [];
  }

  /** A member to try, which nobody else in this process tries until it is given back; null when there is none. */
  async take(fingerprint: string): Promise<PooledSandbox | null> {
    const known = this.#shift(fingerprint);
    if (known !== null) return known;
    this.#reading ??= this.#read();
    await this.#reading;
    return this.#shift(fingerprint);
  }

  /** The try is over. */
  giveBack(member: PooledSandbox): void {
    this.#taken.delete(member.sandbox.id);
  }

  #shift(fingerprint: string): PooledSandbox | null {
    const index = this.#known.findIndex((member) => member.fingerprint === fingerprint && !this.#taken.has(member.sandbox.id));
    const [member] = index < 0 ? [] : this.#known.splice(index, 1);
    if (member === undefined) return null;
    this.#taken.add(member.sandbox.id);
    return member;
  }

  async #read(): Promise<void> {
    try {
      this.learn(await this.#store.pooled());
    } finally {
      this.#reading = null;
    }
  }
}
