import { raceSignal } from './timeout.ts';

/** Lets equal requests that come at the same time share one run. */
export interface SingleFlight<T> {
  /**
   * Joins the run of this key, or starts it. A caller whose signal fires leaves, with the signal's reason; the run is
   * ended, with the same reason, only when nobody is left.
   */
  join(key: string, signal: AbortSignal, run: (signal: AbortSignal) => Promise<T>): Promise<T>;

  /** When all runs that are under way have ended. */
  settled(): Promise<void>;
}

interface Flight<T> {
  readonly promise: Promise<T>;
  readonly controller: AbortController;
  passengers: number;
}

export function createSingleFlight<T>(): SingleFlight<T> {
  const flights = new Map<string, Flight<T>>();
  const running = new Set<Promise<unknown>>();

  function start(key: string, run: (signal: AbortSignal) => Promise<T>): Flight<T> {
    const controller = new AbortController();
    const promise = run(controller.signal);
    const flight = { promise, controller, passengers: 0 };
    flights.set(key, flight);
    track(promise, () => land(key, flight));
    return flight;
  }

  function track(promise: Promise<T>, onEnd: () => void): void {
    const ended = promise.then(onEnd, onEnd).finally(() => running.delete(ended));
    running.add(ended);
  }

  function land(key: string, flight: Flight<T>): void {
    if (flights.get(key) === flight) flights.delete(key);
  }

  return {
    async join(key, signal, run) {
      signal.throwIfAborted();
      const flight = flights.get(key) ?? start(key, run);
      flight.passengers += 1;
      try {
        return await raceSignal(flight.promise, signal);
      } finally {
        flight.passengers -= 1;
        if (flight.passengers === 0) {
          land(key, flight);
          flight.controller.abort(signal.reason);
        }
      }
    },
    async settled() {
      await Promise.all(running);
    },
  };
}
