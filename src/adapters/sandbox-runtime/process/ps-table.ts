import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { z } from 'zod';
import { carrier } from './environment.ts';
import { send, type ProcessEntry, type ProcessTable } from './process-table.ts';

const run = promisify(execFile);
const Environment = z.record(z.string(), z.string());
const columns = 'pid=,ppid=,pgid=,stat=,lstart=';

/**
 * The processes as `ps` shows them, for systems without `/proc`. Start times are whole seconds, and sessions are not
 * told, so that a process which left its group is found by its parent and by its environment only.
 */
export function createPsTable(): ProcessTable {
  let boot: Promise<string> | undefined;
  return {
    kind: 'ps',
    bootId: () =>
      (boot ??= run('sysctl', ['-n', 'kern.bootsessionuuid']).then(
        ({ stdout }) => stdout.trim(),
        () => 'unknown',
      )),
    find: async (pid) => (await list('-p', String(pid)))[0] ?? null,
    all: () => list('-A'),
    notBefore: ({ start }, otherStart) => !(Date.parse(start) < Date.parse(otherStart)),
    async hasVariable({ pid }, variable, value) {
      return ` ${await commandLine(pid)} `.includes(` ${variable}=${value} `);
    },
    async environment({ pid }) {
      const encoded = new RegExp(` ${carrier}=([\\w-]+)(?: |$)`).exec(await commandLine(pid))?.[1];
      return encoded === undefined ? null : Environment.parse(JSON.parse(Buffer.from(encoded, 'base64url').toString()));
    },
    // A line that `ps` shows can't be taken apart where a value holds a space.
    carried: (environment) => ({ [carrier]: Buffer.from(JSON.stringify(environment)).toString('base64url') }),
    signal: ({ pid }, signal) => send(pid, signal),
    signalGroup: ({ pid }, signal) => send(-pid, signal),
  };
}

/** The arguments of a process, then its environment, in one line. */
async function commandLine(pid: number): Promise<string> {
  const withEnvironment = process.platform === 'darwin' ? '-Eww' : 'eww';
  const { stdout } = await run('ps', [withEnvironment, '-o', 'command=', '-p', String(pid)], { maxBuffer: 64 << 20 }).catch(() => ({ stdout: '' }));
  return stdout.trim();
}

async function list(...selection: readonly string[]): Promise<ProcessEntry[]> {
  const env = { ...process.env, LC_ALL: 'C', TZ: 'UTC' };
  // It answers 1 when no process matches.
  const { stdout } = await run('ps', [...selection, '-o', columns], { env, maxBuffer: 64 << 20 }).catch(
    (error: { readonly code?: unknown }) => {
      if (error.code === 1) return { stdout: '' };
      throw error;
    },
  );
  return stdout.split('\n').flatMap((line) => parseLine(line) ?? []);
}

function parseLine(line: string): ProcessEntry | null {
  const [, pid, parent, group, state, start] = /^\s*(\d+)\s+(\d+)\s+(\d+)\s+(\S+)\s+(\S.*?)\s*$/.exec(line) ?? [];
  if (state === undefined || start === undefined || /^[ZX]/.test(state)) return null;
  return {
    pid: Number(pid),
    parent: Number(parent),
    group: Number(group),
    session: 0,
    start,
    held: state.startsWith('T'),
    uninterruptible: /^[DU]/.test(state),
  };
}
