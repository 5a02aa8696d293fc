import { timedOut } from './failures.ts';
import { createSingleFlight } from '../../shared/single-flight.ts';
import type { ResolvedOptions } from './options.ts';
import { createSlots } from './slots.ts';
import type { Snapshot } from './snapshot.ts';
import { createSnapshotCache } from './snapshot-cache.ts';
import { readSnapshot, type SnapshotRequest } from './snapshot-reader.ts';
import { realTimers, startTimeout } from '../../shared/timeout.ts';

/** What directories hold, remembered for as long as it is true. */
export interface Snapshots {
  at(request: SnapshotRequest, signal: AbortSignal): Promise<Snapshot>;
  /** When no git process runs any more. */
  settled(): Promise<void>;
}

export function createSnapshots(options: ResolvedOptions, closing: AbortSignal): Snapshots {
  const cache = createSnapshotCache(options.cacheEntries, options.cachePaths);
  const flights = createSingleFlight<Snapshot>();
  const slots = createSlots(options.concurrency);
  const { timeoutMs } = options;

  /** Settles when its git processes are gone; the callers don't wait for that. */
  async function read(key: string, request: SnapshotRequest, nobodyLeft: AbortSignal): Promise<Snapshot> {
    const limit = startTimeout(realTimers, timeoutMs, () => timedOut(timeoutMs), [nobodyLeft, closing]);
    try {
      return await slots.use(request.repository.commonDir, limit.signal, async () => {
        const earlier = cache.get(key);
        if (earlier !== null && isOf(earlier, request)) return earlier;
        const snapshot = await readSnapshot(options, request, earlier, limit.signal);
        cache.set(key, snapshot);
        return snapshot;
      });
    } finally {
      limit.end();
    }
  }

  return {
    async at(request, signal) {
      const { repository, directory, oid, shallow } = request;
      const key = `${repository.gitDir}\0${directory}`;
      const remembered = cache.get(key);
      if (remembered !== null && isOf(remembered, request)) return remembered;
      return await flights.join(`${key}\0${oid}\0${shallow}`, signal, (nobodyLeft) =>
        read(key, request, nobodyLeft),
      );
    },
    settled: () => flights.settled(),
  };
}

function isOf(snapshot: Snapshot, { oid, shallow }: SnapshotRequest): boolean {
  return snapshot.oid === oid && snapshot.shallow === shallow;
}
