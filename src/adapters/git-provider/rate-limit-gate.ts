import type { Clock } from '../../ports/clock.ts';

/** Keeps the peace with a host that has said when it takes the next request of this credential. */
export interface Gate {
  /** Throws while it is closed. */
  pass(): void;
  /** In milliseconds. A time that ends before the one that holds already changes nothing. */
  closeFor(ms: number): void;
}

/** `refusal` makes what is thrown, given how long the gate stays closed, in milliseconds. */
export function createGate(clock: Clock, refusal: (waitMs: number) => Error): Gate {
  let opensAt = 0;
  return {
    pass() {
      const waitMs = opensAt - clock.now();
      if (waitMs > 0) throw refusal(waitMs);
    },
    closeFor(ms) {
      // Nothing may be noted for no time at all: a clock that is set back would make a wait of it.
      if (ms > 0) opensAt = Math.max(opensAt, clock.now() + ms);
    },
  };
}
