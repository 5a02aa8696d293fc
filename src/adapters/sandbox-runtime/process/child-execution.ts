import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { stat } from 'node:fs/promises';
import { constants } from 'node:os';
import type { Readable, Writable } from 'node:stream';
import { sentenceOf } from '../../shared/failure-sentences.ts';
import { spawned } from '../../shared/spawned.ts';
import { errorCode } from '../../shared/system-errors.ts';
import { inputStream, outputStream } from '../execution-streams.ts';
import { resolveCommand } from './command.ts';

export type Child = ChildProcessByStdio<Writable, Readable, Readable | null>;

/**
 * Starts the command in its own session and group. Returns why it can't run, with the exit code that a shell would return. Rejects with a
 * system error if the host can't start any process.
 */
export async function spawnCommand(
  command: readonly string[], cwd: string, env: Readonly<Record<string, string>>,
): Promise<Child | { readonly code: 126 | 127; readonly reason: string }> {
  const isDirectory = await stat(cwd).then((entry) => entry.isDirectory(), () => false);
  if (!isDirectory) return { code: 126, reason: `the working directory ${cwd} does not exist, or is not accessible` };
  const resolved = await resolveCommand(command, cwd, env['PATH'] ?? '');
  if ('refused' in resolved) {
    return { code: resolved.refused.code === 'command_not_found' ? 127 : 126, reason: sentenceOf(resolved.refused) };
  }
  const [program, ...args] = resolved.command;
  try {
    const options = { cwd, env, argv0: command[0], detached: true } as const;
    return await spawned(spawn(program, args, { ...options, stdio: ['pipe', 'pipe', 'pipe'] }));
  } catch (error) {
    const reason = refusals[errorCode(error) ?? ''];
    if (reason === undefined) throw error;
    return { code: 126, reason };
  }
}

/** System errors that the command causes. */
const refusals: Readonly<Record<string, string>> = {
  E2BIG: 'the command and its environment are too long',
  EACCES: 'the command or its working directory may not be used',
  ENOENT: 'the command, its interpreter or its working directory is not there',
  ENOEXEC: 'the command is no program of this system',
  ENOTDIR: 'the working directory is not a directory',
};

/** An execution that is a child of this process. */
export type ChildExecution = ReturnType<typeof childExecution>;

/** Follows a child that has just started. `end` kills the child and all its processes. */
export function childExecution(child: Child, end: () => Promise<void>) {
  // This must come first: output of a child that ends before anything listens is lost.
  const stdin = inputStream(child.stdin);
  const stdout = outputStream(child.stdout);
  const stderr = child.stderr === null ? ReadableStream.from<Uint8Array>([]) : outputStream(child.stderr);
  const exited = new Promise<number>((resolve) => {
    child.once('exit', (code, signal) => resolve(code ?? 128 + (signal === null ? 0 : constants.signals[signal])));
  });
  const kill = async (): Promise<void> => {
    await end();
    await exited;
  };
  let outlives = false;
  const outlive = (): void => {
    outlives = true;
  };
  /** Kills it, unless it outlives this process. */
  const leave = async (): Promise<void> => {
    if (!outlives) return kill();
    child.unref();
    for (const stream of child.stdio) stream?.destroy();
  };
  return { stdin, stdout, stderr, exited, kill, outlive, leave };
}
