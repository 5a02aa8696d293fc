import { spawn } from 'node:child_process';
import { failed, tooLarge } from './failures.ts';

export interface GitCommand {
  readonly binary: string;
  readonly args: readonly string[];
  readonly folder: string;
  readonly environment: NodeJS.ProcessEnv;
  readonly maxOutputBytes: number;
}

export interface GitExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** The beginning of what it said, for the log only. */
  readonly stderr: string;
}

const maxStderr = 4096;

/**
 * Runs git and hands over its output as it comes. Ends it at once when `signal` fires or `onOutput` throws, and rejects
 * with that reason. Settles only when the process is gone.
 */
export function runGit(command: GitCommand, signal: AbortSignal, onOutput: (chunk: Buffer) => void): Promise<GitExit> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    // Not in a session of its own: Linux would schedule each such process as a newcomer, which is slow on a busy machine.
    const child = spawn(command.binary, command.args, {
      cwd: command.folder,
      env: command.environment,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let problem: { readonly reason: unknown } | null = null;
    const end = (reason: unknown): void => {
      problem ??= { reason };
      child.kill('SIGKILL');
      // Whatever a wrapper of git may have left behind is not waited for, and can't write any more.
      child.stdout.destroy();
      child.stderr.destroy();
    };
    const onAbort = (): void => end(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });

    let bytes = 0;
    child.stdout.on('data', (chunk: Buffer) => {
      if (problem !== null) return;
      bytes += chunk.length;
      if (bytes > command.maxOutputBytes) return end(tooLarge(`${command.maxOutputBytes} bytes`));
      try {
        onOutput(chunk);
      } catch (error) {
        end(error);
      }
    });
    let stderr = '';
    child.stderr.setEncoding('latin1').on('data', (text: string) => {
      if (stderr.length < maxStderr) stderr += text.slice(0, maxStderr - stderr.length);
    });
    child.on('error', (error) => {
      problem ??= { reason: cannotStart(error) };
      if (child.pid === undefined) settle(null, null);
    });
    const settle = (code: number | null, killedBy: NodeJS.Signals | null): void => {
      signal.removeEventListener('abort', onAbort);
      if (problem !== null) reject(problem.reason);
      else resolve({ code, signal: killedBy, stderr });
    };
    child.on('close', settle);
  });
}

function cannotStart(error: Error & { code?: unknown }): Error {
  return error.code === 'ENOENT'
    ? failed('the git program is not there; install git, or name it in the configuration', error)
    : failed('the git program can not be started', error);
}
