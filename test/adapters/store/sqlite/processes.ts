import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach } from 'vitest';
import { newFolder } from './harness.ts';

const script = fileURLToPath(new URL('child.ts', import.meta.url));

/** A process that works on a data folder. */
export interface Child {
  readonly pid: number;
  /** The lines that it has printed so far. */
  readonly lines: readonly string[];
  /** Waits until it has printed `count` lines. */
  said(count: number): Promise<void>;
  tell(line: string): void;
  /** Kills it with SIGKILL, and waits until it has ended. */
  kill(): Promise<void>;
  /** Waits until it ends by itself. */
  ended(): Promise<void>;
}

const running = new Set<Child>();

/** Kills the processes that a failed test has left. */
async function endChildren(): Promise<void> {
  await Promise.all([...running].map((child) => child.kill()));
}

export function startChild(role: string, dataDir: string, tag = '', shellLimit?: string): Child {
  const command = [process.execPath, '--disable-warning=ExperimentalWarning', script, role, dataDir, tag];
  const [program = '', ...args] = shellLimit === undefined ? command : ['sh', '-c', `${shellLimit}; exec "$@"`, 'sh', ...command];
  const child: ChildProcessByStdio<Writable, Readable, null> = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  const lines: string[] = [];
  const reader = createInterface(child.stdout);
  reader.on('line', (line) => lines.push(line));
  const exit = once(child, 'exit');
  const closed = once(reader, 'close');
  const started: Child = {
    pid: child.pid ?? 0,
    lines,
    async said(count) {
      while (lines.length < count) {
        const ended = await Promise.race([once(reader, 'line').then(() => false), closed.then(() => true)]);
        if (ended && lines.length < count) throw new Error(`it ended having said ${JSON.stringify(lines)}`);
      }
    },
    tell: (line) => void child.stdin.write(`${line}\n`),
    async kill() {
      child.kill('SIGKILL');
      await Promise.all([exit, closed]);
    },
    async ended() {
      await Promise.all([exit, closed]);
    },
  };
  running.add(started);
  child.once('exit', () => running.delete(started));
  return started;
}

/** Calls `prepare` with a new folder before each test of the file. After the test, ends its processes and removes the folder. */
export function eachFolder(prepare: (path: string) => void): void {
  let folder: ReturnType<typeof newFolder>;
  beforeEach(() => {
    folder = newFolder();
    prepare(folder.path);
  });
  afterEach(async () => {
    await endChildren();
    folder.remove();
  });
}
