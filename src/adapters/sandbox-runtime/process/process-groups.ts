import { setTimeout as sleep } from 'node:timers/promises';
import { Failure } from '../../../domain/failure.ts';
import { markVariable } from './command.ts';
import type { Leader } from './launch-records.ts';
import type { ProcessEntry, ProcessTable } from './process-table.ts';

/** Identifies the processes of a launch, or of an execution in it. */
export interface Lineage {
  readonly leader: Leader | null;
  readonly plan: { readonly mark: string };
  /** The environment variable with the mark. Default: the one of launches. */
  readonly variable?: string;
}

/** Returns the leader if it still runs. Null if its id now belongs to another process. */
export async function findLeader(table: ProcessTable, leader: Leader | null): Promise<ProcessEntry | null> {
  if (leader === null || leader.boot !== (await table.bootId())) return null;
  const process = await table.find(leader.pid);
  return process?.start === leader.start ? process : null;
}

/**
 * Returns all living processes of the lineage: those in the group or session of its leader, those with its mark in their environment, those
 * in `known`, and all descendants of these.
 */
export async function findMembers(
  table: ProcessTable,
  { leader, plan, variable = markVariable }: Lineage,
  known: ReadonlySet<string> = new Set(),
): Promise<ProcessEntry[]> {
  if (leader === null || leader.boot !== (await table.bootId())) return [];
  const candidates = (await table.all()).filter((process) => table.notBefore(process, leader.start));

  const group = candidates.filter((process) => process.group === leader.pid || process.session === leader.pid);
  const owner = candidates.find(({ pid }) => pid === leader.pid);
  const isOwnGroup = owner === undefined ? isOfLaunch(await table.haveVariable(group, variable, plan.mark)) : owner.start === leader.start;
  const members = new Map(isOwnGroup ? group.map((process) => [process.pid, process]) : []);
  for (const process of candidates) if (known.has(identityOf(process))) members.set(process.pid, process);

  const others = candidates.filter(({ pid }) => !members.has(pid));
  const marks = await table.haveVariable(others, variable, plan.mark);
  for (const [index, process] of others.entries()) if (marks[index] === true) members.set(process.pid, process);
  // The loop also visits the members that it adds.
  for (const { pid } of members.values()) {
    for (const process of candidates) if (process.parent === pid && !members.has(process.pid)) members.set(process.pid, process);
  }
  return [...members.values()];
}

/**
 * Returns whether a group without its leader belongs to the launch, by the marks of its members. The kernel does not reuse a number while a
 * group has it, so one member is enough. A member without a readable environment counts as ours only if no other member is foreign.
 */
function isOfLaunch(marks: readonly (boolean | null)[]): boolean {
  return marks.includes(true) || (marks.includes(null) && !marks.includes(false));
}

/** Identifies a process within this boot. */
function identityOf({ pid, start }: ProcessEntry): string {
  return `${pid} ${start}`;
}

/** How long the kernel may take to deliver SIGSTOP, SIGCONT and SIGKILL. */
const limitMs = 10_000;

/** Stops all processes, also those that are forked meanwhile. Returns when none is running. */
export async function freezeAll(table: ProcessTable, lineage: Lineage): Promise<void> {
  const lookUp = createMemberLookup(table, lineage);
  const signalled = new Set<string>();
  // A process that waits in the kernel (state D) stops only when it leaves the kernel, and a parent waits there for a child that was
  // stopped between fork and exec. If we sent it SIGSTOP, it counts as stopped. The leader is an exception: it never waits like that, and
  // its state decides whether the sandbox is frozen.
  const willStopLater = (process: ProcessEntry): boolean =>
    process.uninterruptible && signalled.has(identityOf(process)) && process.pid !== lineage.leader?.pid;
  await repeatUntilZero(async () => {
    await signalLeadersGroup(table, lineage, 'SIGSTOP');
    const members = await lookUp();
    const running = members.filter((process) => !process.isStopped && !willStopLater(process));
    signalWithGroups(table, running, members, 'SIGSTOP');
    for (const process of running) signalled.add(identityOf(process));
    return running.length;
  });
}

/** Continues all processes, the leader last: while the leader is stopped, the sandbox counts as frozen. */
export async function thawAll(table: ProcessTable, lineage: Lineage): Promise<void> {
  const lookUp = createMemberLookup(table, lineage);
  const released = new Set<string>();
  await repeatUntilZero(async () => {
    // A process in the kernel may have a pending stop. SIGCONT cancels it.
    const stopped = (await lookUp()).filter(
      (process) => (process.isStopped || process.uninterruptible) && !released.has(identityOf(process)),
    );
    for (const process of stopped) if (process.group !== lineage.leader?.pid) table.signal(process, 'SIGCONT');
    await signalLeadersGroup(table, lineage, 'SIGCONT');
    for (const process of stopped) {
      table.signal(process, 'SIGCONT');
      released.add(identityOf(process));
    }
    return stopped.length;
  });
}

/**
 * Sends SIGTERM to all processes. After the grace period, or as soon as `mustEndNow` returns true, kills the rest. Returns whether
 * processes were killed.
 */
export async function endAll(table: ProcessTable, lineage: Lineage, graceMs: number, mustEndNow: () => boolean): Promise<boolean> {
  const lookUp = createMemberLookup(table, lineage);
  const deadline = performance.now() + graceMs;
  let asked = false;
  let members = await lookUp();
  for (let waitMs = 2; members.length > 0 && performance.now() < deadline && !mustEndNow(); waitMs = Math.min(waitMs * 2, 50)) {
    // If only the leader exists, it is about to run the command, so the command still needs a SIGTERM. Otherwise it is sent only once, so
    // that processes for the cleanup are not ended.
    if (!asked) signalWithGroups(table, members, members, 'SIGTERM');
    asked ||= members.some(({ pid }) => pid !== lineage.leader?.pid);
    for (const process of members) if (process.isStopped) table.signal(process, 'SIGCONT');
    await sleep(Math.min(waitMs, Math.max(0, deadline - performance.now())));
    members = await lookUp();
  }
  await killAll(table, lineage, lookUp);
  return members.length > 0;
}

/** Kills all processes at once, and waits until none is left. */
export async function killAll(
  table: ProcessTable, lineage: Lineage, lookUp: MemberLookup = createMemberLookup(table, lineage),
): Promise<void> {
  let quiet = 0;
  await repeatUntilZero(async () => {
    // Looks up the members first, because a process whose parent has ended may not be found any more.
    const members = await lookUp();
    await signalLeadersGroup(table, lineage, 'SIGKILL');
    signalWithGroups(table, members, members, 'SIGKILL');
    // Needs two empty lookups in a row: one may miss a process that forks and ends meanwhile.
    quiet = members.length === 0 ? quiet + 1 : 0;
    return quiet < 2 ? 1 : 0;
  });
}

/** Returns the members of a lineage. Remembers those from earlier calls, even if they no longer have the group, the mark or the parent. */
type MemberLookup = () => Promise<readonly ProcessEntry[]>;

function createMemberLookup(table: ProcessTable, lineage: Lineage): MemberLookup {
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

/** Signals whole groups if their leader is a member: all processes at once, so that none escapes by a fork. */
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

async function repeatUntilZero(round: () => Promise<number>): Promise<void> {
  const deadline = performance.now() + limitMs;
  for (let waitMs = 1; (await round()) > 0; waitMs = Math.min(waitMs * 2, 20)) {
    if (performance.now() > deadline) throw new Failure('runtime_timeout', { runtime: 'process', limitMs });
    await sleep(waitMs);
  }
}
