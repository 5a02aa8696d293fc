import { constants } from 'node:os';
import { absentSandbox, type ExposedUrl, type ObservedSandbox } from '../../../domain/sandbox.ts';
import { findLeader, findMembers } from './members.ts';
import type { ProcessEntry, ProcessTable } from './process-table.ts';
import { type Claim, type LaunchRecord, noteGone, readExit } from './records.ts';

export interface FactQuestion {
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
export async function factOf(question: FactQuestion): Promise<ObservedSandbox> {
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
export function describeExit(status: number): string {
  const signal = Object.entries(constants.signals).find(([, number]) => status === 128 + number)?.[0];
  return signal === undefined ? `exited with code ${status}` : `killed by ${signal}`;
}
