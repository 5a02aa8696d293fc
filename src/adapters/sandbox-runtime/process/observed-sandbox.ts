import { constants } from 'node:os';
import { absentSandbox, type ExposedUrl, type ObservedSandbox } from '../../../domain/sandbox.ts';
import { demandRoot, type Layout, sandboxIds } from './data-folder.ts';
import { type Claim, type LaunchRecord, noteGone, readExit, readLastLaunch } from './launch-records.ts';
import { findLeader, findMembers } from './process-groups.ts';
import type { ProcessEntry, ProcessTable } from './process-table.ts';

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

interface FactQuestion {
  readonly id: string;
  /** The folder of the records. */
  readonly launches: string;
  readonly record: LaunchRecord | null | 'absent';
  /** Where it is looked first; it must be no older than the record. */
  readonly processes: ProcessTable;
  /** The processes as they are. */
  readonly table: ProcessTable;
}

/** Tells what holds of a sandbox, from its records and the host's processes alone. */
async function factOf(question: FactQuestion): Promise<ObservedSandbox> {
  const { id, record, processes } = question;
  if (record === 'absent') return absentSandbox(id);
  if (record === null) return { id, state: 'created', exposedUrls: [], detail: null, endedFromOutside: false };
  const { claim, gone, freezing } = record;
  if (claim === null || gone) return ended(question, record);

  const leader = await findLeader(processes, claim.leader);
  if (leader !== null) return alive(id, claim, [leader], freezing, null);
  const members = await findMembers(processes, claim);
  if (members.length > 0) return alive(id, claim, members, freezing, await describeLeaderless(question, record));
  // A second look, since a process that forks and ends meanwhile may be missed by one.
  if ((await findMembers(question.table, claim)).length > 0) return alive(id, claim, [], false, null);
  await noteGone(question.launches, record.number);
  return ended(question, record);
}

function alive(
  id: string,
  { plan }: Claim,
  processes: readonly ProcessEntry[],
  freezing: boolean,
  detail: string | null,
): ObservedSandbox {
  // A member that waits in the kernel for one that is held is held as well.
  const held =
    !freezing && processes.some((process) => process.held) && processes.every((process) => process.held || process.uninterruptible);
  const exposedUrls: ExposedUrl[] = plan.ports.map(({ name, port, hostPort }) => ({
    name,
    url: `http://127.0.0.1:${hostPort}`,
    port,
  }));
  return { id, state: held ? 'frozen' : 'running', exposedUrls, detail, endedFromOutside: false };
}

async function ended({ id, launches, table }: FactQuestion, { number, claim }: LaunchRecord): Promise<ObservedSandbox> {
  const stopped = (detail: string, endedFromOutside = false): ObservedSandbox => ({ id, state: 'stopped', exposedUrls: [], detail, endedFromOutside });
  if (claim?.plan.refused !== undefined) return stopped(claim.plan.refused);
  const status = await readExit(launches, number);
  if (status !== null) return stopped(describeExit(status));
  const restarted = claim?.leader?.boot !== (await table.bootId());
  return restarted ? stopped('the host was restarted while it ran', true) : stopped('its processes were killed');
}

async function describeLeaderless({ launches }: FactQuestion, { number }: LaunchRecord): Promise<string> {
  const status = await readExit(launches, number);
  return status === null
    ? 'the process that leads it was killed, and others run on'
    : `its command ${describeExit(status)}, and processes that it left behind run on`;
}

/** How a command ended, given the status as a shell tells it: more than 128 for the number of a signal. */
function describeExit(status: number): string {
  const signal = Object.entries(constants.signals).find(([, number]) => status === 128 + number)?.[0];
  return signal === undefined ? `exited with code ${status}` : `killed by ${signal}`;
}

/** The table with one look at all processes, taken when it is first needed: for questions about many sandboxes at once. */
function createSnapshot(table: ProcessTable): ProcessTable {
  let taken: Promise<readonly ProcessEntry[]> | undefined;
  const all = (): Promise<readonly ProcessEntry[]> => (taken ??= table.all());
  return {
    ...table,
    all,
    // `/proc` tells of one process for less than of all; `ps` costs a process each time.
    find: async (pid) =>
      table.kind === 'proc' ? table.find(pid) : ((await all()).find((process) => process.pid === pid) ?? null),
  };
}
