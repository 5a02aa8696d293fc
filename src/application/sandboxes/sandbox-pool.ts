import { isFailure } from '../../domain/failure.ts';
import type { Reason } from '../../domain/reason.ts';
import { markDeleted } from '../../domain/sandbox-lifecycle.ts';
import { claimedFromPool, newPoolMember, planPool, type PooledSpec, type PoolPlan } from '../../domain/pool-plan.ts';
import { isPooled, type NewSandbox, type Sandbox, type ObservedSandbox } from '../../domain/sandbox.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Logger } from '../../ports/logger.ts';
import type { Random } from '../../ports/random.ts';
import type { SandboxRuntime } from '../../ports/sandbox-runtime.ts';
import type { PooledSandbox, SandboxStore } from '../../ports/sandbox-store.ts';
import { BackOff } from '../timers.ts';
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
  /** How many members start at a time, over all specs and processes. */
  readonly startsAtOnce: number;
}

/** How many members are tried before a sandbox is started without the pool. */
const maxTries = 8;

/**
 * Keeps sandboxes running for later starts, and gives them to owners. The store decides which members exist and who gets one;
 * what this object holds in memory only saves work.
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
    this.#unsubscribe = deps.reconciler.onReconciled((reconciled) => this.#onReconciled(reconciled));
  }

  /**
   * Tries running members of the spec's pool until `write` has given one to the owner. Returns null if there is none. `write` gets
   * the owner's record and the member.
   */
  async claim<T extends { readonly kind: string }>(
    asked: Omit<NewSandbox, 'sessionApiKey'>,
    write: (sandbox: Sandbox, member: Sandbox) => Promise<T>,
  ): Promise<T | null> {
    const fingerprint = this.#deps.specs.pooled(asked.spec.id)?.fingerprint;
    if (fingerprint === undefined) return null;
    for (let tried = 0; tried < maxTries; tried += 1) {
      const member = await this.#members.take(fingerprint);
      if (member === null) break;
      try {
        const observed = await this.#inspect(member.sandbox);
        if (observed === null) break;
        if (observed.state !== 'running') {
          this.#deps.reconciler.enqueue(member.sandbox.id);
          continue;
        }
        const outcome = await write(claimedFromPool(member.sandbox, asked, observed.exposedUrls), member.sandbox);
        if (outcome.kind !== 'stale') return outcome;
        this.#members.forget();
      } finally {
        this.#members.giveBack(member);
      }
    }
    return null;
  }

  /** Fills the pools. Nobody waits. */
  enqueue(): void {
    if (this.#closed) return;
    this.#upkeep.run('pools').catch((error: unknown) => {
      const fields = isFailure(error) ? { code: error.code, context: error.context } : { error };
      this.#deps.logger.warn(fields, 'the pools could not be filled; the next sweep tries again');
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#cancelRetry();
    this.#unsubscribe();
    await this.#upkeep.drain();
  }

  /** Returns null if the runtime does not answer. */
  async #inspect({ instanceId }: Sandbox): Promise<ObservedSandbox | null> {
    try {
      return await this.#deps.runtime.inspect(instanceId);
    } catch (error) {
      if (isFailure(error)) return null;
      throw error;
    }
  }

  #onReconciled({ sandbox }: Reconciled): void {
    if (sandbox !== null && isPooled(sandbox)) this.enqueue();
  }

  async #keep(): Promise<void> {
    const { store, specs, clock, startsAtOnce } = this.#deps;
    const members = await store.pooled();
    this.#members.learn(members);
    this.#judge(members);
    const wanted = specs.allPooled();
    if (members.length === 0 && wanted.length === 0) return;
    const backOffs = wanted.map(({ fingerprint }) => [fingerprint, this.#backOff.waitMs(fingerprint)] as const);
    const waits = backOffs.filter(([, ms]) => ms > 0);
    const held = new Set(waits.map(([fingerprint]) => fingerprint));
    const plan = planPool(members, wanted, { atOnce: startsAtOnce, held, now: clock.now() });
    await this.#carryOut(plan);
    this.#retryIn(Math.min(...waits.map(([, ms]) => ms)));
  }

  /** Notes the specs whose members start, and those whose members don't. */
  #judge(members: readonly PooledSandbox[]): void {
    const failed = members.filter(({ sandbox }) => sandbox.status === 'ERROR').map(({ fingerprint }) => fingerprint);
    for (const { sandbox, fingerprint } of members) {
      if (sandbox.status === 'RUNNING') this.#backOff.succeeded(fingerprint, sandbox.statusSince);
    }
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

  async #remove(member: Sandbox, reason: Reason): Promise<void> {
    const { store, reconciler, clock, logger } = this.#deps;
    const { kind } = await store.replace(markDeleted(member, reason, clock.now()));
    if (kind === 'stale') return;
    logger.info({ sandbox: member.id, spec: member.spec.id, reason }, 'a pool member was removed');
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

/** The running pool members that this process knows and does not try at the moment. They are hints: the store decides who gets one. */
export class PoolMembers {
  readonly #store: SandboxStore;
  readonly #taken = new Set<string>();
  #known: PooledSandbox[] = [];
  #reading: Promise<void> | null = null;

  constructor(store: SandboxStore) {
    this.#store = store;
  }

  /** Remembers what the store returned. */
  learn(members: readonly PooledSandbox[]): void {
    this.#known = members.filter(({ sandbox }) => sandbox.status === 'RUNNING');
  }

  /** What is known may be out of date. */
  forget(): void {
    this.#known = [];
  }

  /** Returns a member that nobody else in this process tries until it is given back; null if there is none. */
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
