import type { ChildProcess } from 'node:child_process';
import type { ObservedSandbox } from '../../../domain/sandbox.ts';
import { Listeners } from '../../shared/listeners.ts';
import type { Observer, Observation } from './observed-sandbox.ts';

/** Calls listeners when a sandbox changes without a request. */
export class SandboxWatch {
  readonly #observer: Observer;
  readonly #pollMs: number;
  readonly #killLeftovers: (id: string) => Promise<void>;
  readonly #listeners = new Listeners<string>();
  /** The leaders that are children of this process. The system reports their end. */
  readonly #children = new Map<string, ChildProcess>();
  /** The live sandboxes that other processes started. They are polled. */
  readonly #polled = new Map<string, Observation>();
  #isPolling = false;
  #isComplete = false;
  #timer: NodeJS.Timeout | undefined;

  /** `killLeftovers` kills the processes that an ended command left behind. */
  constructor(observer: Observer, pollMs: number, killLeftovers: (id: string) => Promise<void>) {
    this.#observer = observer;
    this.#pollMs = pollMs;
    this.#killLeftovers = killLeftovers;
  }

  /** Watches a leader that is a child of this process. */
  addChild(id: string, leader: ChildProcess): void {
    this.#polled.delete(id);
    this.#children.set(id, leader);
    const onEnd = (): void => {
      if (this.#children.get(id) === leader) this.#children.delete(id);
      void this.#changed(id);
    };
    if (leader.exitCode === null && leader.signalCode === null) leader.once('exit', onEnd);
    else onEnd();
  }

  /** Records a sandbox's state. A live one without a leader of this process is polled from now on. */
  note(observation: Observation): void {
    const { id, state } = observation.observed;
    if (this.#children.has(id) || (state !== 'running' && state !== 'frozen')) this.#polled.delete(id);
    else this.#polled.set(id, observation);
  }

  subscribe(call: (id: string) => void): () => void {
    const end = this.#listeners.add(call);
    void this.#poll();
    return end;
  }

  close(): void {
    this.#listeners.clear();
    clearTimeout(this.#timer);
  }

  async #poll(): Promise<void> {
    if (this.#isPolling || this.#listeners.isEmpty) return;
    this.#isPolling = true;
    await this.#pollOnce().catch(() => {});
    this.#isPolling = false;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#poll(), this.#pollMs).unref();
  }

  async #pollOnce(): Promise<void> {
    if (!this.#isComplete) {
      for (const observation of await this.#observer.list()) {
        this.note(observation);
        if (isLeaderless(observation.observed)) await this.#changed(observation.observed.id);
      }
      this.#isComplete = true;
    }
    const before = [...this.#polled.values()];
    for (const [index, observed] of (await this.#observer.recheck(before)).entries()) {
      const observation = before[index];
      if (observation === undefined || this.#polled.get(observed.id) !== observation) continue;
      const earlier = observation.observed;
      if (earlier.state !== observed.state || isLeaderless(observed) !== isLeaderless(earlier)) await this.#changed(observed.id);
    }
  }

  async #changed(id: string): Promise<void> {
    try {
      await this.#killLeftovers(id);
      this.note(await this.#observer.observe(id));
    } catch {
      // The listener reads the state again. If the failure persists, the listener gets it.
      this.#polled.delete(id);
    }
    this.#listeners.notify(id);
  }
}

function isLeaderless({ reason }: ObservedSandbox): boolean {
  return reason?.code === 'main_process_ended';
}
