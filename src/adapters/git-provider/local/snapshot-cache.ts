import { createSingleFlight } from '../../shared/single-flight.ts';
import { realTimers, startTimeout } from '../../shared/timeout.ts';
import { timedOut } from './failures.ts';
import type { ResolvedOptions } from './local-git-provider.ts';
import { readSnapshot, type Snapshot, type SnapshotRequest } from './snapshot-reader.ts';

/** What directories hold, remembered for as long as it is true. */
interface Snapshots {
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

/** The last snapshot of each directory; those that were not asked for the longest go first. */
interface SnapshotCache {
  get(key: string): Snapshot | null;
  set(key: string, snapshot: Snapshot): void;
}

function createSnapshotCache(maxEntries: number, maxPaths: number): SnapshotCache {
  const snapshots = new Map<string, Snapshot>();
  let paths = 0;

  function remove(key: string): void {
    const snapshot = snapshots.get(key);
    if (snapshot !== undefined) paths -= weightOf(snapshot);
    snapshots.delete(key);
  }

  return {
    get(key) {
      const snapshot = snapshots.get(key);
      if (snapshot === undefined) return null;
      snapshots.delete(key);
      snapshots.set(key, snapshot);
      return snapshot;
    },
    set(key, snapshot) {
      remove(key);
      snapshots.set(key, snapshot);
      paths += weightOf(snapshot);
      for (const oldest of snapshots.keys()) {
        if (snapshots.size <= maxEntries && paths <= maxPaths) return;
        remove(oldest);
      }
    },
  };
}

function weightOf({ files, dates }: Snapshot): number {
  return Math.max(files.length, dates?.size ?? 0);
}

/** Lets a bounded number of pieces of work run at the same time, and one of each owner; the others wait in turn. */
interface Slots {
  /** Rejects with the signal's reason when it fires before the turn comes. */
  use<T>(owner: string, signal: AbortSignal, work: () => Promise<T>): Promise<T>;
}

interface Waiting {
  readonly owner: string;
  admit(): void;
}

function createSlots(limit: number): Slots {
  const busy = new Set<string>();
  const queue: Waiting[] = [];

  function admitNext(): void {
    while (busy.size < limit) {
      const index = queue.findIndex(({ owner }) => !busy.has(owner));
      const [next] = index === -1 ? [] : queue.splice(index, 1);
      if (next === undefined) return;
      busy.add(next.owner);
      next.admit();
    }
  }

  function turn(owner: string, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      const leave = (): void => {
        queue.splice(queue.indexOf(waiting), 1);
        reject(signal.reason);
      };
      const waiting = {
        owner,
        admit: (): void => {
          signal.removeEventListener('abort', leave);
          resolve();
        },
      };
      signal.addEventListener('abort', leave, { once: true });
      queue.push(waiting);
      admitNext();
    });
  }

  return {
    async use(owner, signal, work) {
      await turn(owner, signal);
      try {
        signal.throwIfAborted();
        return await work();
      } finally {
        busy.delete(owner);
        admitNext();
      }
    },
  };
}
