import { readFile, readdir, writeFile } from 'node:fs/promises';
import { until } from '../../../support/until.ts';

interface Process {
  readonly pid: number;
  readonly parent: number;
  /** Its arguments, with a space between them. */
  readonly commandLine: string;
}

/** Those of this machine that live; a zombie does not. */
export async function livingProcesses(): Promise<readonly Process[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number);
  return (await Promise.all(pids.map(read))).filter((found) => found !== null);
}

export async function isAlive(pid: number): Promise<boolean> {
  return (await read(pid)) !== null;
}

/** Those that it started, those that they did, and so on. */
export async function descendantsOf(pid: number): Promise<readonly Process[]> {
  const living = await livingProcesses();
  const below = (parent: number): Process[] => living.flatMap((one) => (one.parent === parent ? [one, ...below(one.pid)] : []));
  return below(pid);
}

/** Lets it go on if it is frozen with its container: it would not even end. */
export async function thaw(pid: number): Promise<void> {
  const groups = await readFile(`/proc/${pid}/cgroup`, 'utf8').catch(() => '');
  const pathOf = (pattern: RegExp): string => pattern.exec(groups)?.[1] ?? '/';
  for (const [group, file, going] of [
    [pathOf(/^\d+:freezer:(.*)$/m), '/sys/fs/cgroup/freezer%/freezer.state', 'THAWED'],
    [pathOf(/^0::(.*)$/m), '/sys/fs/cgroup%/cgroup.freeze', '0'],
  ] as const) {
    // What is at the root is not a container's. And a machine has one of the two kinds of groups, or both.
    if (group !== '/') await writeFile(file.replace('%', group), going).catch(() => {});
  }
}

/** Ends them at once, and waits until they have. */
export async function kill(pids: readonly number[]): Promise<void> {
  for (const pid of pids) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It has ended meanwhile.
    }
  }
  for (const pid of pids) await until(() => isAlive(pid), (alive) => !alive);
}

async function read(pid: number): Promise<Process | null> {
  try {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
    // The name in brackets may have any character.
    const [state = 'X', parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (state === 'Z' || state === 'X') return null;
    return { pid, parent: Number(parent), commandLine: (await readFile(`/proc/${pid}/cmdline`, 'utf8')).replaceAll('\0', ' ') };
  } catch {
    return null;
  }
}
