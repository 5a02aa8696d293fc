import type { ChildProcess } from 'node:child_process';
import type { ObservedSandbox } from '../../../domain/sandbox.ts';
import { Listeners } from '../../shared/listeners.ts';
import type { Observer, Sighting } from './observed-sandbox.ts';

/** Calls listeners when a sandbox changes without a request. */
export class Watch {
  readonly #observer: Observer;
  readonly #pollMs: number;
  readonly #clearUp: (id: string) => Promise<void>;
  readonly #listeners = new Listeners<string>();
  /** The leaders that are children of this process. The system reports their end. */
  readonly #own = new Map<string, ChildProcess>();
  /** The live sandboxes that other processes started. They are polled. */
  readonly #polled = new Map<string, Sighting>();
  #isLooking = false;
  #isComplete = false;
  #timer: NodeJS.Timeout | undefined;

  /** `clearUp` kills the processes that an ended command left behind. */
  constructor(observer: Observer, pollMs: number, clearUp: (id: string) => Promise<void>) {
    this.#observer = observer;
    this.#pollMs = pollMs;
    this.#clearUp = clearUp;
  }

  /** Watches a leader that is a child of this process. */
  addOwn(id: string, leader: ChildProcess): void {
    this.#polled.delete(id);
    this.#own.set(id, leader);
    const onEnd = (): void => {
      if (this.#own.get(id) === leader) this.#own.delete(id);
      void this.#changed(id);
    };
    if (leader.exitCode === null && leader.signalCode === null) leader.once('exit', onEnd);
    else onEnd();
  }

  /** Records a sandbox's state. A live one without a leader of this process is polled from now on. */
  seen(sighting: Sighting): void {
    const { id, state } = sighting.observed;
    if (this.#own.has(id) || (state !== 'running' && state !== 'frozen')) this.#polled.delete(id);
    else this.#polled.set(id, sighting);
  }

  subscribe(call: (id: string) => void): () => void {
    const end = this.#listeners.add(call);
    void this.#keepLooking();
    return end;
  }

  close(): void {
    this.#listeners.clear();
    clearTimeout(this.#timer);
  }

  async #keepLooking(): Promise<void> {
    if (this.#isLooking || this.#listeners.isEmpty) return;
    this.#isLooking = true;
    await this.#look().catch(() => {});
    this.#isLooking = false;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#keepLooking(), this.#pollMs).unref();
  }

  async #look(): Promise<void> {
    if (!this.#isComplete) {
      for (const sighting of await this.#observer.list()) {
        this.seen(sighting);
        if (isLeaderless(sighting.observed)) await this.#changed(sighting.observed.id);
      }
      this.#isComplete = true;
    }
    const before = [...this.#polled.values()];
    for (const [index, observed] of (await this.#observer.recheck(before)).entries()) {
      const sighting = before[index];
      if (sighting === undefined || this.#polled.get(observed.id) !== sighting) continue;
      const earlier = sighting.observed;
      if (earlier.state !== observed.state || isLeaderless(observed) !== isLeaderless(earlier)) await this.#changed(observed.id);
    }
  }

  async #changed(id: string): Promise<void> {
    try {
      await this.#clearUp(id);
      this.seen(await this.#observer.observe(id));
    } catch {
      // The listener reads the state again. If the failure persists, the listener gets it.
      this.#polled.delete(id);
    }
    this.#listeners.tell(id);
  }
}

function isLeaderless({ reason }: ObservedSandbox): boolean {
  return reason?.code === 'main_process_ended';
}
