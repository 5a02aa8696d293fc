import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { stat } from 'node:fs/promises';
import type { Readable, Writable } from 'node:stream';
import type { ExecutionRequest } from '../../../../ports/sandbox-runtime.ts';
import { resolveCommand } from '../command.ts';
import { errorCode } from '../file-errors.ts';

export type Child = ChildProcessByStdio<Writable, Readable, Readable>;

/** Why a command can't be run, in the code and the words of a shell. */
export interface Unrunnable {
  readonly code: 126 | 127;
  readonly reason: string;
}

/** Starts the command in a session and group of its own. Rejects with a system error where the host can't start anything. */
export async function spawnCommand(
  { command }: ExecutionRequest,
  cwd: string,
  env: Readonly<Record<string, string>>,
): Promise<Child | Unrunnable> {
  const isDirectory = await stat(cwd).then((entry) => entry.isDirectory(), () => false);
  if (!isDirectory) return { code: 126, reason: 'the working directory is not there' };
  const resolved = await resolveCommand(command, cwd, env['PATH'] ?? '');
  if (!resolved.ok) return { code: /not found/.test(resolved.problem) ? 127 : 126, reason: resolved.problem };
  const [program, ...args] = resolved.command;
  try {
    const child = spawn(program, args, { cwd, env, argv0: command[0], detached: true, stdio: ['pipe', 'pipe', 'pipe'] });
    await new Promise((resolve, reject) => {
      child.once('spawn', resolve);
      child.once('error', reject);
    });
    return child;
  } catch (error) {
    const reason = refusals[errorCode(error) ?? ''];
    if (reason === undefined) throw error;
    return { code: 126, reason };
  }
}

/** What the system says of a command, and not of itself. */
const refusals: Readonly<Record<string, string>> = {
  E2BIG: 'the command and its environment are too long',
  EACCES: 'the command or its working directory may not be used',
  ENOENT: 'the command, its interpreter or its working directory is not there',
  ENOEXEC: 'the command is no program of this system',
  ENOTDIR: 'the working directory is not a directory',
};
