import type { Events } from '../../application/events/events.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Logger } from '../../ports/logger.ts';

export interface Purging {
  /** Ends it, when what is under way is done. */
  close(): Promise<void>;
}

/** Forgets old events, now and again every so many milliseconds. */
export function purgeEvents(events: Pick<Events, 'purge'>, clock: Clock, logger: Logger, everyMs: number): Purging {
  let closed = false;
  let cancel: (() => void) | null = null;
  let underWay = purge();

  async function purge(): Promise<void> {
    try {
      await events.purge();
    } catch (error) {
      logger.warn({ error }, 'old events were not forgotten; it is tried again later');
    }
    if (!closed) cancel = clock.after(everyMs, again);
  }

  function again(): void {
    underWay = purge();
  }

  return {
    async close() {
      closed = true;
      cancel?.();
      await underWay;
    },
  };
}
