import type { Snapshot } from './snapshot.ts';

/** The last snapshot of each directory; those that were not asked for the longest go first. */
export interface SnapshotCache {
  get(key: string): Snapshot | null;
  set(key: string, snapshot: Snapshot): void;
}

export function createSnapshotCache(maxEntries: number, maxPaths: number): SnapshotCache {
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
