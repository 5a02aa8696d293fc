import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { z } from 'zod';
import { ignoring } from '../../shared/system-errors.ts';
import { environmentVariable } from './command.ts';

/** A living process. Zombies do not count: they hold nothing but their id. */
export interface ProcessEntry {
  readonly pid: number;
  readonly parent: number;
  readonly group: number;
  /** 0 if the platform does not show it. */
  readonly session: number;
  /** The start time, in the platform's own format. With the pid and the boot it identifies a process uniquely. */
  readonly start: string;
  /** True if a signal has stopped it. */
  readonly isStopped: boolean;
  /** True if it is in the kernel and handles no signal now. A sent signal takes effect before it runs on. */
  readonly uninterruptible: boolean;
}

export interface ProcessTable {
  readonly kind: 'proc' | 'ps';

  /** Identifies this boot of the host. */
  bootId(): Promise<string>;

  /** Returns the process with this id. Null if none lives. */
  find(pid: number): Promise<ProcessEntry | null>;

  all(): Promise<readonly ProcessEntry[]>;

  /** Returns whether `process` can have started at `otherStart` or later. */
  notBefore(process: ProcessEntry, otherStart: string): boolean;

  /**
   * Returns for each process whether it started with this variable and value in its environment. Null if it lives but shows no
   * environment: it has none, has just started a program, or is about to end.
   */
  haveVariable(processes: readonly ProcessEntry[], variable: string, value: string): Promise<readonly (boolean | null)[]>;

  /** Returns the environment that the process started with, including `extraVariables`. Null if it can't be read any more. */
  environment(process: ProcessEntry): Promise<Readonly<Record<string, string>> | null>;

  /** Returns additional variables that a process needs so that its environment can be read. */
  extraVariables(environment: Readonly<Record<string, string>>): Readonly<Record<string, string>>;

  /** Sends the signal to the process, if the id is still its own. */
  signal(process: ProcessEntry, signal: NodeJS.Signals): void;

  /** Sends the signal to all members of the process's group at once. */
  signalGroup(leader: ProcessEntry, signal: NodeJS.Signals): void;
}

/** Sends a signal. Ignores a process that has ended. */
function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    ignoring('ESRCH', 'EPERM')(error);
  }
}

/** The processes in Linux's `/proc`. */
export function createProcTable(): ProcessTable {
  let boot: Promise<string> | undefined;
  return {
    kind: 'proc',
    bootId: () => (boot ??= readFile('/proc/sys/kernel/random/boot_id', 'latin1').then((id) => id.trim())),
    find,
    async all() {
      const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
      const entries = await Promise.all(pids.map((pid) => find(Number(pid))));
      return entries.filter((entry) => entry !== null);
    },
    notBefore: ({ start }, otherStart) => Number(start) >= Number(otherStart),
    haveVariable: (processes, variable, value) => Promise.all(processes.map(({ pid }) => hasVariable(pid, variable, value))),
    async environment({ pid }) {
      const environ = await readFile(`/proc/${pid}/environ`).catch(() => null);
      if (environ === null || environ.length === 0) return null;
      // A value may contain more `=`.
      const entries = [...environ.toString().matchAll(/([^=\0]+)=([^\0]*)/g)];
      return Object.fromEntries(entries.map(([, name = '', value = '']): [string, string] => [name, value]));
    },
    extraVariables: () => ({}),
    signal(process, signal) {
      if (isSameProcess(process)) send(process.pid, signal);
    },
    signalGroup(leader, signal) {
      if (isSameProcess(leader)) send(-leader.pid, signal);
    },
  };
}

async function hasVariable(pid: number, variable: string, value: string): Promise<boolean | null> {
  const environ = await readFile(`/proc/${pid}/environ`, 'latin1').catch(() => null);
  if (environ === '') return (await find(pid)) === null ? false : null;
  return `\0${environ ?? ''}`.includes(`\0${variable}=${value}\0`);
}

async function find(pid: number): Promise<ProcessEntry | null> {
  const stat = await readFile(`/proc/${pid}/stat`, 'latin1').catch(() => null);
  return stat === null ? null : parseStat(stat);
}

// Synchronous, so that the id can't change its owner between the check and the signal.
function isSameProcess({ pid, start }: ProcessEntry): boolean {
  try {
    return parseStat(readFileSync(`/proc/${pid}/stat`, 'latin1'))?.start === start;
  } catch {
    return false;
  }
}

// `pid (name) state ppid pgrp session ... num_threads itrealvalue starttime ...`; the name may contain any character.
function parseStat(stat: string): ProcessEntry | null {
  const [state, parent, group, session, ...rest] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const threads = rest[13];
  const start = rest[15];
  if (state === undefined || start === undefined || start === '') return null;
  if (/[ZXx]/.test(state) && Number(threads) <= 1) return null;
  return {
    pid: Number.parseInt(stat, 10),
    parent: Number(parent),
    group: Number(group),
    session: Number(session),
    start,
    isStopped: state === 'T' || state === 't',
    uninterruptible: state === 'D',
  };
}

const run = promisify(execFile);
const Environment = z.record(z.string(), z.string());
const withEnvironment = process.platform === 'darwin' ? '-Eww' : 'eww';
const columns = 'pid=,ppid=,pgid=,stat=,lstart=,command=';

/** Of each entry: the arguments of the process and then its environment, in one line. */
const commandLines = new WeakMap<ProcessEntry, string>();

/**
 * The processes in the output of `ps`, for systems without `/proc`. Start times are whole seconds, and there are no sessions. So a process
 * that left its group is found only by its parent and its environment.
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
    haveVariable: async (processes, variable, value) =>
      processes.map((process) => ` ${commandLines.get(process) ?? ''} `.includes(` ${variable}=${value} `)),
    async environment(process) {
      const encoded = new RegExp(` ${environmentVariable}=([\\w-]+)(?: |$)`).exec(commandLines.get(process) ?? '')?.[1];
      return encoded === undefined ? null : Environment.parse(JSON.parse(Buffer.from(encoded, 'base64url').toString()));
    },
    // A line of `ps` can't be split into variables if a value contains a space.
    extraVariables: (environment) => ({ [environmentVariable]: Buffer.from(JSON.stringify(environment)).toString('base64url') }),
    signal: ({ pid }, signal) => send(pid, signal),
    signalGroup: ({ pid }, signal) => send(-pid, signal),
  };
}

async function list(...selection: readonly string[]): Promise<ProcessEntry[]> {
  return (await ps([withEnvironment, ...selection, '-o', columns])).flatMap((line) => parseLine(line) ?? []);
}

/** Returns the lines that `ps` writes. It exits with 1 if no process matches. */
async function ps(args: readonly string[]): Promise<readonly string[]> {
  const env = { ...process.env, LC_ALL: 'C', TZ: 'UTC' };
  const { stdout } = await run('ps', args, { env, maxBuffer: Infinity }).catch((error: { readonly code?: unknown }) => {
    if (error.code === 1) return { stdout: '' };
    throw error;
  });
  return stdout.split('\n');
}

/** The columns; the start time is five words, as in `Sat Nov 28 19:20:05 2026`. */
const psLine = /^\s*(\d+)\s+(\d+)\s+(\d+)\s+(\S+)\s+((?:\S+\s+){4}\S+)\s*(.*)$/;

function parseLine(line: string): ProcessEntry | null {
  const [, pid, parent, group, state, start, command] = psLine.exec(line) ?? [];
  if (state === undefined || start === undefined || command === undefined || /^[ZX]/.test(state)) return null;
  const entry: ProcessEntry = {
    pid: Number(pid),
    parent: Number(parent),
    group: Number(group),
    session: 0,
    start,
    isStopped: state.startsWith('T'),
    uninterruptible: /^[DU]/.test(state),
  };
  commandLines.set(entry, command);
  return entry;
}
