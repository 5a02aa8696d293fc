import type { ObservedSandbox } from '../../../domain/sandbox.ts';
import { factOf } from './facts.ts';
import { demandRoot, sandboxIds } from './folders.ts';
import type { Layout } from './layout.ts';
import type { ProcessTable } from './process-table.ts';
import { readLastLaunch, type Claim, type LaunchRecord } from './records.ts';
import { createSnapshot } from './snapshot.ts';

/** A sandbox as it was read. */
export interface Sighting {
  readonly fact: ObservedSandbox;
  readonly record: LaunchRecord | null | 'absent';
  /** What runs or is frozen; null when nothing does. */
  readonly live: LiveLaunch | null;
}

export type LiveLaunch = LaunchRecord & { readonly claim: Claim };

/** Reads what holds, from the disk and the process table each time. */
export interface Reader {
  readonly read: (id: string) => Promise<Sighting>;
  /** Costs one look at the process table at most, however many sandboxes there are. */
  readonly readAll: () => Promise<readonly Sighting[]>;
  /** What holds of sandboxes that were read, if nothing new was written down of them. In their order. */
  readonly recheck: (sightings: readonly Sighting[]) => Promise<readonly ObservedSandbox[]>;
}

/** How many sandboxes are read at a time. */
const batch = 32;

export function createReader(layout: Layout, table: ProcessTable): Reader {
  const sight = async (id: string, record: Sighting['record'], processes: ProcessTable): Promise<Sighting> => {
    const fact = await factOf({ id, launches: layout.sandbox(id).launches, record, processes, table });
    return { fact, record, live: liveLaunch(fact, record) };
  };
  return {
    async read(id) {
      const record = await readLastLaunch(layout.sandbox(id).launches);
      if (record === 'absent') await demandRoot(layout);
      return sight(id, record, table);
    },
    async readAll() {
      await demandRoot(layout);
      const ids = await sandboxIds(layout);
      const records = await inBatches(ids, async (id) => ({ id, record: await readLastLaunch(layout.sandbox(id).launches) }));
      // Taken after the records were read, so that every leader that they name had begun.
      const processes = createSnapshot(table);
      const sightings = await inBatches(records, ({ id, record }) => sight(id, record, processes));
      return sightings.filter(({ fact }) => fact.state !== 'absent');
    },
    async recheck(sightings) {
      const processes = createSnapshot(table);
      return inBatches(sightings, async ({ fact, record }) => (await sight(fact.id, record, processes)).fact);
    },
  };
}

function liveLaunch({ state }: ObservedSandbox, record: Sighting['record']): LiveLaunch | null {
  if (state !== 'running' && state !== 'frozen') return null;
  if (record === null || record === 'absent' || record.claim === null) return null;
  return { ...record, claim: record.claim };
}

async function inBatches<T, R>(items: readonly T[], each: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  for (let at = 0; at < items.length; at += batch) {
    results.push(...(await Promise.all(items.slice(at, at + batch).map(each))));
  }
  return results;
}
