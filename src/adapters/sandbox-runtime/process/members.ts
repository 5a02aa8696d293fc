import { markVariable } from './environment.ts';
import type { ProcessEntry, ProcessTable } from './process-table.ts';
import type { Leader } from './records.ts';

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
  const isMarked = (process: ProcessEntry): Promise<boolean> => table.hasVariable(process, variable, plan.mark);

  const group = candidates.filter((process) => process.group === leader.pid || process.session === leader.pid);
  const owner = candidates.find(({ pid }) => pid === leader.pid);
  const isOwnGroup = owner === undefined ? await some(group, isMarked) : owner.start === leader.start;
  const members = new Map(isOwnGroup ? group.map((process) => [process.pid, process]) : []);
  for (const process of candidates) if (known.has(identityOf(process))) members.set(process.pid, process);

  const others = candidates.filter(({ pid }) => !members.has(pid));
  const marks = await Promise.all(others.map(isMarked));
  for (const [index, process] of others.entries()) if (marks[index] === true) members.set(process.pid, process);
  addDescendants(members, candidates);
  return [...members.values()];
}

/** Tells a process from all others of this boot. */
export function identityOf({ pid, start }: ProcessEntry): string {
  return `${pid} ${start}`;
}

function addDescendants(members: Map<number, ProcessEntry>, candidates: readonly ProcessEntry[]): void {
  for (let found = true; found; ) {
    found = false;
    for (const process of candidates) {
      if (members.has(process.pid) || !members.has(process.parent)) continue;
      members.set(process.pid, process);
      found = true;
    }
  }
}

// The kernel does not give a number away while a group has it: without its leader, a group is the launch's if one
// member of it is.
async function some(group: readonly ProcessEntry[], test: (process: ProcessEntry) => Promise<boolean>): Promise<boolean> {
  return (await Promise.all(group.map(test))).includes(true);
}
