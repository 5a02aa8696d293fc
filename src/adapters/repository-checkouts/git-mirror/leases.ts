import { readdir, stat } from 'node:fs/promises';
import { createSemaphore, type Semaphore } from '../../shared/semaphore.ts';
import type { Folders } from './folders.ts';
import { mirrorId, mirrorIn, type Mirror } from './mirror.ts';
import { sizeOf } from './size.ts';

/** The right to use a mirror, which stays while there is one. */
export interface Lease {
  readonly mirror: Mirror;
  /** One at a time for each mirror: for whoever works on it. */
  readonly turns: Semaphore;
  readonly release: () => void;
}

export interface Leases {
  take(provider: string, repository: string): Lease;
  /** How many there are, and their bytes. */
  stock(): { readonly mirrors: number; readonly bytes: number };
  /** When all are released, and what follows that is done. */
  settled(): Promise<void>;
}

interface Known {
  readonly mirror: Mirror;
  readonly turns: Semaphore;
  users: number;
  bytes: number;
  usedAt: number;
}

/** `tidy` is called after each release, while nobody has a turn; it is told whether somebody still uses the mirror. */
export async function createLeases(folders: Folders, limitBytes: number, tidy: (mirror: Mirror, inUse: boolean) => Promise<void>): Promise<Leases> {
  const known = new Map<string, Known>();
  const outstanding = new Set<Promise<void>>();
  const never = new AbortController().signal;
  for (const id of await readdir(folders.mirrors)) {
    const entry = newEntry(id);
    entry.bytes = await sizeOf(entry.mirror.folder);
    entry.usedAt = (await stat(entry.mirror.used).catch(() => null))?.mtimeMs ?? 0;
    known.set(id, entry);
  }
  follow(makeRoom());

  function newEntry(id: string): Known {
    return { mirror: mirrorIn(folders.mirrors, id), turns: createSemaphore(1), users: 0, bytes: 0, usedAt: 0 };
  }

  function follow(work: Promise<void>): void {
    // What can't be tidied is tidied another time; it is in nobody's way.
    const done = work.catch(() => undefined).finally(() => outstanding.delete(done));
    outstanding.add(done);
  }

  async function afterRelease(entry: Known): Promise<void> {
    await entry.turns.use(never, async () => {
      await tidy(entry.mirror, entry.users > 0);
      entry.bytes = await sizeOf(entry.mirror.folder);
    });
    const { id } = entry.mirror;
    if (entry.users === 0 && entry.bytes === 0 && known.get(id) === entry) known.delete(id);
    await makeRoom();
  }

  async function makeRoom(): Promise<void> {
    for (;;) {
      const idle = [...known].filter(([, { users }]) => users === 0).toSorted(([, a], [, b]) => a.usedAt - b.usedAt);
      const [oldest] = idle;
      if (oldest === undefined || total() <= limitBytes) return;
      const [id, entry] = oldest;
      await entry.turns.use(never, async () => {
        if (entry.users > 0) return;
        // Who comes while it goes away waits for the turn, and makes it anew.
        await folders.discard(entry.mirror.folder);
        entry.bytes = 0;
      });
      if (entry.users === 0) known.delete(id);
    }
  }

  const total = (): number => [...known.values()].reduce((sum, { bytes }) => sum + bytes, 0);

  return {
    take(provider, repository) {
      const id = mirrorId(provider, repository);
      const entry = known.get(id) ?? newEntry(id);
      known.set(id, entry);
      entry.users += 1;
      entry.usedAt = Date.now();
      const released = Promise.withResolvers<void>();
      follow(released.promise);
      let held = true;
      return {
        mirror: entry.mirror,
        turns: entry.turns,
        release() {
          if (!held) return;
          held = false;
          entry.users -= 1;
          follow(afterRelease(entry));
          released.resolve();
        },
      };
    },
    stock: () => ({ mirrors: known.size, bytes: total() }),
    async settled() {
      while (outstanding.size > 0) await Promise.all(outstanding);
    },
  };
}
