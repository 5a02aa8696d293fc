import type { PooledSandbox, SandboxStore } from '../../ports/sandbox-store.ts';

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
