import { setTimeout as pause } from 'node:timers/promises';
import { Failure } from '../../../domain/failure.ts';
import { markVariable } from './command.ts';
import type { Leader } from './launch-records.ts';
import type { ProcessEntry, ProcessTable } from './process-table.ts';

/** What the processes of a launch, or of an execution in it, are known by. */
export interface Lineage {
  readonly leader: Leader | null;
  readonly plan: { readonly mark: string };
  /** The variable that holds the mark; that of launches unless it is said. */
  readonly variable?: string;
}

/** The leader, if it is this process and not one that merely got its number. */
export async function findLeader(table: ProcessTable, leader: Leader | null): Promise<ProcessEntry | null> {
  if (leader === null || leader.boot !== (await table.bootId())) return null;
  const process = await table.find(leader.pid);
  return process?.start === leader.start ? process : null;
}

/**
 * Every living process of the lineage, wherever it went: those in the group and session of its leader, those that carry
 * its mark in their environment, those that were `known` to be members, and all children of these.
 */
export async function findMembers(
  table: ProcessTable,
  { leader, plan, variable = markVariable }: Lineage,
  known: ReadonlySet<string> = new Set(),
): Promise<ProcessEntry[]> {
  if (leader === null || leader.boot !== (await table.bootId())) return [];
  const candidates = (await table.all()).filter((process) => table.notBefore(process, leader.start));
  const isMarked = (process: ProcessEntry): Promise<boolean | null> => table.hasVariable(process, variable, plan.mark);

  const group = candidates.filter((process) => process.group === leader.pid || process.session === leader.pid);
  const owner = candidates.find(({ pid }) => pid === leader.pid);
  const isOwnGroup = owner === undefined ? isOfLaunch(await Promise.all(group.map(isMarked))) : owner.start === leader.start;
  const members = new Map(isOwnGroup ? group.map((process) => [process.pid, process]) : []);
  for (const process of candidates) if (known.has(identityOf(process))) members.set(process.pid, process);

  const others = candidates.filter(({ pid }) => !members.has(pid));
  const marks = await Promise.all(others.map(isMarked));
  for (const [index, process] of others.entries()) if (marks[index] === true) members.set(process.pid, process);
  // The loop also visits the members that it adds.
  for (const { pid } of members.values()) {
    for (const process of candidates) if (process.parent === pid && !members.has(process.pid)) members.set(process.pid, process);
  }
  return [...members.values()];
}

/**
 * Whether a group without its leader is the launch's, by the marks of its members. The kernel does not give a number away while a group
 * has it, so that one member decides for all. One that shows no environment does not make the group a stranger's.
 */
function isOfLaunch(marks: readonly (boolean | null)[]): boolean {
  return marks.includes(true) || (marks.includes(null) && !marks.includes(false));
}

/** Identifies a process among all of this boot. */
function identityOf({ pid, start }: ProcessEntry): string {
  return `${pid} ${start}`;
}

/** How long the kernel may take to carry out signals that no process can refuse. */
const limitMs = 10_000;

/** Stops every process, also those that are forked meanwhile: it is over when a look finds none that runs on. */
export async function holdAll(table: ProcessTable, lineage: Lineage): Promise<void> {
  const look = createLook(table, lineage);
  const asked = new Set<string>();
  // One that is in the kernel runs on only to be stopped. It may be there until it is continued: a parent waits so for a
  // child that was stopped between fork and exec. The leader does not wait so, and decides whether the sandbox is frozen.
  const isAboutToStop = (process: ProcessEntry): boolean =>
    process.uninterruptible && asked.has(identityOf(process)) && process.pid !== lineage.leader?.pid;
  await untilNone(async () => {
    await signalLeadersGroup(table, lineage, 'SIGSTOP');
    const members = await look();
    const loose = members.filter((process) => !process.held && !isAboutToStop(process));
    signalWithGroups(table, loose, members, 'SIGSTOP');
    for (const process of loose) asked.add(identityOf(process));
    return loose.length;
  });
}

/** Continues every process, the leader last: while it is held, the sandbox counts as frozen. */
export async function releaseAll(table: ProcessTable, lineage: Lineage): Promise<void> {
  const look = createLook(table, lineage);
  const released = new Set<string>();
  await untilNone(async () => {
    // One that is in the kernel may have a stop to come, which this takes back.
    const held = (await look()).filter(
      (process) => (process.held || process.uninterruptible) && !released.has(identityOf(process)),
    );
    for (const process of held) if (process.group !== lineage.leader?.pid) table.signal(process, 'SIGCONT');
    await signalLeadersGroup(table, lineage, 'SIGCONT');
    for (const process of held) {
      table.signal(process, 'SIGCONT');
      released.add(identityOf(process));
    }
    return held.length;
  });
}

/**
 * Asks every process to end, and kills what is left after the grace, or as soon as `isHurried` returns true. Returns whether it came
 * to that.
 */
export async function endAll(table: ProcessTable, lineage: Lineage, graceMs: number, isHurried: () => boolean): Promise<boolean> {
  const look = createLook(table, lineage);
  const deadline = performance.now() + graceMs;
  let asked = false;
  let members = await look();
  for (let waitMs = 2; members.length > 0 && performance.now() < deadline && !isHurried(); waitMs = Math.min(waitMs * 2, 50)) {
    // A leader alone is about to run the command, which is then asked in its turn. Nobody is asked twice: what a process
    // starts to clean up with is left to do so.
    if (!asked) signalWithGroups(table, members, members, 'SIGTERM');
    asked ||= members.some(({ pid }) => pid !== lineage.leader?.pid);
    for (const process of members) if (process.held) table.signal(process, 'SIGCONT');
    await pause(Math.min(waitMs, Math.max(0, deadline - performance.now())));
    members = await look();
  }
  await killAll(table, lineage, look);
  return members.length > 0;
}

/** Ends every process at once, and waits until none is left. */
export async function killAll(table: ProcessTable, lineage: Lineage, look: Look = createLook(table, lineage)): Promise<void> {
  let quiet = 0;
  await untilNone(async () => {
    // They are looked for first, because a process whose parent is gone may not be found any more.
    const members = await look();
    await signalLeadersGroup(table, lineage, 'SIGKILL');
    signalWithGroups(table, members, members, 'SIGKILL');
    // Two looks in a row: a process that forks and ends while it is looked for may be missed by one.
    quiet = members.length === 0 ? quiet + 1 : 0;
    return quiet < 2 ? 1 : 0;
  });
}

/** Finds the members of a launch, those too that were found before and left all that they were known by. */
type Look = () => Promise<readonly ProcessEntry[]>;

function createLook(table: ProcessTable, lineage: Lineage): Look {
  const known = new Set<string>();
  return async () => {
    const members = await findMembers(table, lineage, known);
    for (const process of members) known.add(identityOf(process));
    return members;
  };
}

async function signalLeadersGroup(table: ProcessTable, lineage: Lineage, signal: NodeJS.Signals): Promise<void> {
  const leader = await findLeader(table, lineage.leader);
  if (leader !== null) table.signalGroup(leader, signal);
}

/** Signals whole groups where their leader is a member too: a group is signalled at one moment, and nobody forks past it. */
function signalWithGroups(
  table: ProcessTable,
  targets: readonly ProcessEntry[],
  members: readonly ProcessEntry[],
  signal: NodeJS.Signals,
): void {
  const groups = new Set(targets.map(({ group }) => group));
  const leaders = members.filter(({ pid, group }) => pid === group && groups.has(pid));
  for (const leader of leaders) table.signalGroup(leader, signal);
  const led = new Set(leaders.map(({ pid }) => pid));
  for (const process of targets) if (!led.has(process.group)) table.signal(process, signal);
}

async function untilNone(round: () => Promise<number>): Promise<void> {
  const deadline = performance.now() + limitMs;
  for (let waitMs = 1; (await round()) > 0; waitMs = Math.min(waitMs * 2, 20)) {
    if (performance.now() > deadline) throw new Failure('runtime_timeout', { runtime: 'process', limitMs });
    await pause(waitMs);
  }
}
