import pLimit from 'p-limit';
import { dnsLabel } from '../../../domain/dns-label.ts';
import type { Reason } from '../../../domain/reason.ts';
import { absentSandbox, type ObservedSandbox } from '../../../domain/sandbox.ts';
import { signalName } from '../signal-numbers.ts';
import { requireRoot, type Layout, sandboxIds } from './data-folder.ts';
import { addNote, type Claim, type LaunchRecord, neverLaunched, readExit, readLastLaunch } from './launch-records.ts';
import { findLeader, findMembers } from './process-groups.ts';
import type { ProcessEntry, ProcessTable } from './process-table.ts';

export interface Observation {
  readonly observed: ObservedSandbox;
  /** Null if the sandbox is absent. */
  readonly record: LaunchRecord | null;
  /** The launch that runs or is frozen. Null if there is none. */
  readonly live: LiveLaunch | null;
}

export type LiveLaunch = LaunchRecord & { readonly claim: Claim };

const concurrency = 32;

/** Reads the state of sandboxes. Caches nothing: each call reads the disk and the process table. */
export class Observer {
  readonly layout: Layout;
  readonly table: ProcessTable;

  constructor(layout: Layout, table: ProcessTable) {
    this.layout = layout;
    this.table = table;
  }

  async observe(id: string): Promise<Observation> {
    return this.#observationOf(id, await this.#readRecord(id), this.table);
  }

  /** Reads all sandboxes. Reads the process table at most once for all of them. */
  async list(): Promise<readonly Observation[]> {
    await requireRoot(this.layout);
    const records = await pLimit(concurrency).map(await sandboxIds(this.layout), async (id) => {
      return { id, record: await this.#readRecord(id) };
    });
    // Created after the records were read, so it contains each leader in them.
    const processes = snapshotOf(this.table);
    const observations = await pLimit(concurrency).map(records, ({ id, record }) => this.#observationOf(id, record, processes));
    return observations.filter(({ observed }) => observed.state !== 'absent');
  }

  /** Returns the states of sandboxes again, in the same order. Reads only the processes, not the records. */
  async recheck(observations: readonly Observation[]): Promise<readonly ObservedSandbox[]> {
    const processes = snapshotOf(this.table);
    return pLimit(concurrency).map(observations, ({ observed, record }) => this.#stateOf(observed.id, record, processes));
  }

  /** Returns null if the sandbox does not exist. Only a DNS label can be the id of one: no other id may become a path. */
  async #readRecord(id: string): Promise<LaunchRecord | null> {
    if (!dnsLabel.test(id)) return null;
    const { launches } = this.layout.sandbox(id);
    const record = await readLastLaunch(launches);
    if (record !== null) return record;
    // The data folder may have been missing at that moment, for example while a disk was mounted again.
    await requireRoot(this.layout);
    return readLastLaunch(launches);
  }

  async #observationOf(id: string, record: LaunchRecord | null, processes: ProcessTable): Promise<Observation> {
    const observed = await this.#stateOf(id, record, processes);
    const isLive = observed.state === 'running' || observed.state === 'frozen';
    const claim = record?.claim ?? null;
    return { observed, record, live: isLive && record !== null && claim !== null ? { ...record, claim } : null };
  }

  /** `processes` must not be older than the record: a leader that is not in them counts as ended. */
  async #stateOf(id: string, record: LaunchRecord | null, processes: ProcessTable): Promise<ObservedSandbox> {
    if (record === null) return absentSandbox(id);
    if (record.number === neverLaunched) return { id, state: 'created', exposedUrls: [], reason: null, endedFromOutside: false };
    const { claim, isGone, isFreezing } = record;
    if (claim === null || isGone) return this.#stopped(id, record);

    const leader = await findLeader(processes, claim.leader);
    if (leader !== null) return liveSandbox(id, claim, stateOfProcesses([leader], isFreezing), null);
    const members = await findMembers(processes, claim);
    if (members.length > 0) {
      const status = await readExit(record);
      const reason: Reason = { code: 'main_process_ended', cause: status === null ? null : exited(status) };
      return liveSandbox(id, claim, stateOfProcesses(members, isFreezing), reason);
    }
    // A second check, since the first may miss a process that forks and ends meanwhile. Such processes are not frozen.
    if ((await findMembers(this.table, claim)).length > 0) return liveSandbox(id, claim, 'running', null);
    await addNote(record, 'gone');
    return this.#stopped(id, record);
  }

  async #stopped(id: string, record: LaunchRecord): Promise<ObservedSandbox> {
    const stopped = (reason: Reason, endedFromOutside = false): ObservedSandbox =>
      ({ id, state: 'stopped', exposedUrls: [], reason, endedFromOutside });
    const { claim } = record;
    if (claim?.plan.refused !== undefined) return stopped(claim.plan.refused);
    const status = await readExit(record);
    if (status !== null) return stopped(exited(status));
    await requireRoot(this.layout);
    const isRestarted = claim?.leader?.boot !== (await this.table.bootId());
    return isRestarted ? stopped({ code: 'host_restarted' }, true) : stopped({ code: 'processes_killed' });
  }
}

/** A shell reports a signal as 128 plus its number. */
function exited(status: number): Reason {
  const signal = signalName(status - 128);
  return { code: 'process_exited', exitCode: signal === null ? status : null, signal, program: null };
}

/** Returns the state of a sandbox with these processes. While a freeze is in progress, it is still running. */
function stateOfProcesses(processes: readonly ProcessEntry[], isFreezing: boolean): 'running' | 'frozen' {
  // A member that waits in the kernel for a stopped process counts as stopped too.
  const isFrozen =
    !isFreezing
    && processes.some(({ isStopped }) => isStopped)
    && processes.every(({ isStopped, uninterruptible }) => isStopped || uninterruptible);
  return isFrozen ? 'frozen' : 'running';
}

function liveSandbox(id: string, { plan }: Claim, state: 'running' | 'frozen', reason: Reason | null): ObservedSandbox {
  const exposedUrls = plan.ports.map(({ name, port, hostPort }) => ({ name, url: `http://127.0.0.1:${hostPort}`, port }));
  return { id, state, exposedUrls, reason, endedFromOutside: false };
}

/** The table with one list of all processes, read at the first use. For queries about many sandboxes at once. */
function snapshotOf(table: ProcessTable): ProcessTable {
  let taken: Promise<readonly ProcessEntry[]> | undefined;
  const all = (): Promise<readonly ProcessEntry[]> => (taken ??= table.all());
  return {
    ...table,
    all,
    // With `/proc`, reading one process costs less than reading all. `ps` starts a process for each call.
    find: async (pid) => (table.kind === 'proc' ? table.find(pid) : ((await all()).find((process) => process.pid === pid) ?? null)),
  };
}
