import type { Clock } from '../../ports/clock.ts';

/** What is due later than this is left to the sweeps to find again. */
const horizonMs = 120_000;

/** Rings for each key at its time. They only save waiting for the next sweep, and are gone with the process. */
export class Alarms {
  readonly #clock: Clock;
  readonly #ring: (key: string) => void;
  readonly #set = new Map<string, { readonly at: number; readonly cancel: () => void }>();
  #closed = false;

  constructor(clock: Clock, ring: (key: string) => void) {
    this.#clock = clock;
    this.#ring = ring;
  }

  /** Rings at the time, in milliseconds since the epoch, instead of when it was to before; null is never. */
  set(key: string, at: number | null): void {
    const before = this.#set.get(key);
    if (before !== undefined && before.at === at) return;
    before?.cancel();
    this.#set.delete(key);
    const inMs = at === null ? Infinity : at - this.#clock.now();
    // What is due already and was not done could not be done: ringing again at once would not help.
    if (at === null || inMs <= 0 || inMs > horizonMs || this.#closed) return;
    const cancel = this.#clock.after(inMs, () => {
      this.#set.delete(key);
      this.#ring(key);
    });
    this.#set.set(key, { at, cancel });
  }

  close(): void {
    this.#closed = true;
    for (const { cancel } of this.#set.values()) cancel();
    this.#set.clear();
  }
}
