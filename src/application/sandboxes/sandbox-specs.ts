import { Failure } from '../../domain/failure.ts';
import { poolFingerprint, type PooledSpec } from '../../domain/pool-plan.ts';
import type { SandboxSpec } from '../../domain/sandbox-spec.ts';
import { type Page, pageOf } from '../../domain/page.ts';
import type { Clock } from '../../ports/clock.ts';
import type { SpecStore } from '../../ports/spec-store.ts';

/** A spec, and when its present content was first seen, in milliseconds since the epoch. */
export interface DatedSpec {
  readonly spec: SandboxSpec;
  readonly createdAt: number;
}

/** The specs of the deployment; the first one is the default. */
export class SandboxSpecs {
  readonly #specs: readonly SandboxSpec[];
  readonly #store: SpecStore;
  readonly #clock: Clock;
  /** Those with a pool, by their ids. */
  readonly pooled: ReadonlyMap<string, PooledSpec>;

  constructor(specs: readonly SandboxSpec[], store: SpecStore, clock: Clock) {
    this.#specs = specs;
    this.#store = store;
    this.#clock = clock;
    const pooled = specs.filter(({ pool }) => pool.size > 0);
    this.pooled = new Map(pooled.map((spec) => [spec.id, { spec, fingerprint: poolFingerprint(spec) }]));
  }

  /** Records when each spec got its present content. Must be called when the deployment opens. */
  async recordDates(): Promise<void> {
    for (const spec of this.#specs) await this.#dated(spec);
  }

  /** Returns the spec with the id, or the default one for null; undefined if there is none. */
  find(id: string | null): SandboxSpec | undefined {
    return id === null ? this.#specs[0] : this.#specs.find((spec) => spec.id === id);
  }

  /** Like {@link find}, but throws `invalid_request` if there is none. */
  get(id: string | null): SandboxSpec {
    const spec = this.find(id);
    if (spec !== undefined) return spec;
    const reason = { code: 'unknown_sandbox_spec', specId: id } as const;
    throw new Failure('invalid_request', { problems: [{ argument: 'sandboxSpecId', reason }] });
  }

  /** Returns the specs after `afterId`, in the deployment's order. */
  async search(afterId: string | null, limit: number): Promise<Page<DatedSpec>> {
    const start = afterId === null ? 0 : this.#specs.findIndex(({ id }) => id === afterId) + 1;
    const { items, next } = pageOf(this.#specs.slice(start, start + limit + 1), limit, ({ id }) => ({ value: 0, id }));
    return { items: await Promise.all(items.map((spec) => this.#dated(spec))), next };
  }

  async #dated(spec: SandboxSpec): Promise<DatedSpec> {
    return { spec, createdAt: await this.#store.firstSeen(spec.id, JSON.stringify(spec), this.#clock.now()) };
  }
}
