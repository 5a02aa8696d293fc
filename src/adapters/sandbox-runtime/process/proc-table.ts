import { readFileSync } from 'node:fs';
import { readFile, readdir } from 'node:fs/promises';
import { send, type ProcessEntry, type ProcessTable } from './process-table.ts';

/** The processes as Linux shows them in `/proc`. */
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
    async hasVariable({ pid }, variable, value) {
      const environ = await readFile(`/proc/${pid}/environ`, 'latin1').catch(() => '');
      return `\0${environ}`.includes(`\0${variable}=${value}\0`);
    },
    async environment({ pid }) {
      const environ = await readFile(`/proc/${pid}/environ`).catch(() => null);
      if (environ === null || environ.length === 0) return null;
      return Object.fromEntries(environ.toString().split('\0').flatMap((entry) => (entry.includes('=') ? [splitEntry(entry)] : [])));
    },
    carried: () => ({}),
    signal(process, signal) {
      if (isStill(process)) send(process.pid, signal);
    },
    signalGroup(leader, signal) {
      if (isStill(leader)) send(-leader.pid, signal);
    },
  };
}

function splitEntry(entry: string): [name: string, value: string] {
  const at = entry.indexOf('=');
  return [entry.slice(0, at), entry.slice(at + 1)];
}

async function find(pid: number): Promise<ProcessEntry | null> {
  const stat = await readFile(`/proc/${pid}/stat`, 'latin1').catch(() => null);
  return stat === null ? null : parseStat(stat);
}

// Without a pause between the look and the signal, so that the number has no time to change its owner.
function isStill({ pid, start }: ProcessEntry): boolean {
  try {
    return parseStat(readFileSync(`/proc/${pid}/stat`, 'latin1'))?.start === start;
  } catch {
    return false;
  }
}

// `pid (name) state ppid pgrp session ... num_threads itrealvalue starttime ...`; the name may hold anything.
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
    held: state === 'T' || state === 't',
    uninterruptible: state === 'D',
  };
}
