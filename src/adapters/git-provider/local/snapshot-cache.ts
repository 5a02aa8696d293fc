import { KeyedMutex } from '../../shared/keyed-mutex.ts';
import { createLruMap } from '../../shared/lru-map.ts';
import type { Semaphore } from '../../shared/semaphore.ts';
import { createSingleFlight } from '../../shared/single-flight.ts';
import { realTimers, startTimeout } from '../../shared/timeout.ts';
import { timedOut } from './failures.ts';
import type { ResolvedOptions } from './local-git-provider.ts';
import { readSnapshot, type Snapshot, type SnapshotRequest } from './snapshot-reader.ts';

/** What directories hold, cached for as long as it is true. The latest snapshot of each directory is kept. */
export function createSnapshotCache(options: ResolvedOptions, places: Semaphore, closing: AbortSignal) {
  const latest = createLruMap(options.cacheEntries, options.cachePaths, pathsOf);
  const reads = createSingleFlight<Snapshot>();
  // A slow repository takes one place of all.
  const repositories = new KeyedMutex();
  const { timeoutMs } = options;

  /** Settles when its git processes are gone; the callers do not wait for that. */
  async function read(key: string, request: SnapshotRequest, unwanted: AbortSignal): Promise<Snapshot> {
    const limit = startTimeout(realTimers, timeoutMs, () => timedOut(timeoutMs), [unwanted, closing]);
    try {
      const readOnce = async (): Promise<Snapshot> => {
        const earlier = latest.get(key);
        if (earlier !== null && isOf(earlier, request)) return earlier;
        const snapshot = await readSnapshot(options, request, earlier, limit.signal);
        latest.set(key, snapshot);
        return snapshot;
      };
      const { commonDir } = request.repository;
      return await repositories.inTurn(commonDir, () => places.use(limit.signal, readOnce), limit.signal);
    } finally {
      limit.end();
    }
  }

  return {
    async get(request: SnapshotRequest, signal: AbortSignal): Promise<Snapshot> {
      const { repository, directory, oid, shallow } = request;
      const key = `${repository.gitDir}\0${directory}`;
      const cached = latest.get(key);
      if (cached !== null && isOf(cached, request)) return cached;
      return await reads.join(`${key}\0${oid}\0${shallow}`, signal, (unwanted) => read(key, request, unwanted));
    },
    /** Resolves when no git process runs any more. */
    settled: () => reads.settled(),
  };
}

function isOf(snapshot: Snapshot, { oid, shallow }: SnapshotRequest): boolean {
  return snapshot.oid === oid && snapshot.shallow === shallow;
}

function pathsOf({ files, dates }: Snapshot): number {
  return Math.max(files.length, dates?.size ?? 0);
}
