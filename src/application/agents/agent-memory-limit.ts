import { Failure } from '../../domain/failure.ts';
import type { Clock } from '../../ports/clock.ts';

/** The default limit of agent output that one server holds in memory: 256 MiB. */
export const defaultAgentMemoryBytes = 256 * 2 ** 20;

/** How long an agent may continue alone above the limit without new output. Then another agent may. */
const aloneForMs = 5000;

/** An estimate: the time until there is room depends on the agents and the store. */
const retryAfterSeconds = 10;

interface Waiter {
  readonly bytes: number;
  readonly grant: () => void;
}

/**
 * Counts the bytes that all agents of this process hold in memory: output that is not an update yet, messages that are collected, and
 * events that wait to be written. Above the limit, agents have to wait. One agent may continue alone until it holds nothing, because the
 * bytes may be incomplete lines and messages, which end only if more is read.
 */
export class AgentMemory {
  readonly maxBytes: number;
  readonly #clock: Clock;
  /** In the order of arrival. A share waits for one chunk at a time. */
  readonly #waiting = new Map<MemoryShare, Waiter>();
  #held = 0;
  #alone: MemoryShare | null = null;
  #cancelTimer: () => void = () => {};

  constructor(maxBytes: number, clock: Clock) {
    this.maxBytes = maxBytes;
    this.#clock = clock;
  }

  get held(): number {
    return this.#held;
  }

  share(): MemoryShare {
    return new MemoryShare(this);
  }

  get isFull(): boolean {
    return this.#held >= this.maxBytes;
  }

  /** Throws `conversation_limit_reached` if the memory is full, so that agents get no new messages. */
  check(): void {
    if (!this.isFull) return;
    throw new Failure('conversation_limit_reached', { limit: 'agent_memory', max: this.maxBytes, retryAfterSeconds });
  }

  add(bytes: number): void {
    this.#held += bytes;
    if (bytes < 0) this.#grantWaiting();
  }

  /** Resolves when there is room for the bytes, or the share is closed. */
  async waitForRoom(share: MemoryShare, bytes: number): Promise<void> {
    if (share.isClosed || this.#hasRoom(bytes)) return;
    if (this.#alone === share) return this.#startAlone(share);
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.set(share, { bytes, grant: resolve });
    this.#grantWaiting();
    await promise;
  }

  /** Ends the right of the share to continue alone. */
  stopAlone(share: MemoryShare): void {
    if (this.#alone === share) this.#endAlone();
    this.#grantWaiting();
  }

  isWaiting(share: MemoryShare): boolean {
    return this.#waiting.has(share);
  }

  #hasRoom(bytes: number): boolean {
    return this.#held === 0 || this.#held + bytes <= this.maxBytes;
  }

  #grantWaiting(): void {
    if (this.#alone !== null && !this.isFull) this.#endAlone();
    let granted = 0;
    for (const [share, { bytes, grant }] of this.#waiting) {
      const mayContinue = share.isClosed || this.#hasRoom(granted + bytes);
      if (!mayContinue && this.#alone !== null) continue;
      if (!mayContinue) this.#startAlone(share);
      this.#waiting.delete(share);
      granted += bytes;
      grant();
    }
  }

  #startAlone(share: MemoryShare): void {
    this.#cancelTimer();
    this.#alone = share;
    this.#cancelTimer = this.#clock.after(aloneForMs, () => this.stopAlone(share));
  }

  #endAlone(): void {
    this.#cancelTimer();
    this.#alone = null;
  }
}

export class MemoryShare {
  readonly #memory: AgentMemory;
  readonly #output = { chunk: 0, line: 0 };
  #held = 0;
  isClosed = false;

  constructor(memory: AgentMemory) {
    this.#memory = memory;
  }

  /** True while the agent is held back. */
  get isHeldBack(): boolean {
    return this.#memory.isWaiting(this);
  }

  /** Adds bytes to the share. A negative number removes them. */
  add(bytes: number): void {
    this.#held += bytes;
    this.#memory.add(bytes);
    if (bytes < 0 && this.#held === 0) this.#memory.stopAlone(this);
  }

  get isFull(): boolean {
    return this.#memory.isFull;
  }

  /** Sets how many bytes of the agent's output are held: the chunk that was read last, or an incomplete line. */
  setOutput(part: 'chunk' | 'line', bytes: number): void {
    const before = this.#output[part];
    this.#output[part] = this.isClosed ? 0 : bytes;
    this.add(this.#output[part] - before);
  }

  /** Resolves when there is room for more output of the agent. */
  async waitForRoom(bytes: number): Promise<void> {
    await this.#memory.waitForRoom(this, bytes);
  }

  /** Called when the agent's output is not read any more. Events that wait to be written still count. */
  close(): void {
    this.isClosed = true;
    this.setOutput('chunk', 0);
    this.setOutput('line', 0);
    this.#memory.stopAlone(this);
  }
}
