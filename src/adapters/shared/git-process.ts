import { type ChildProcess, spawn } from 'node:child_process';
import type { Readable } from 'node:stream';

export interface GitCommand {
  readonly binary: string;
  readonly args: readonly string[];
  readonly folder: string;
  readonly environment: NodeJS.ProcessEnv;
  /** Makes the failure where git can't be started. */
  readonly failed: (reason: string, cause?: unknown) => Error;
  /** What it reads from its standard input; that is closed otherwise. */
  readonly input?: string;
  /**
   * Does it start programs that have to end with it? It is in a session of its own then, which Linux schedules as a
   * newcomer: that is slow on a busy machine.
   */
  readonly family?: boolean;
  /** Told what it writes to its standard error, as it comes. */
  readonly onWords?: (text: string) => void;
}

export interface GitExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** The beginning of what it said, for the log only. */
  readonly stderr: string;
}

export interface GitProcess {
  /** What nobody reads holds git back. */
  readonly stdout: Readable;
  /** Settles only when the process is gone. Rejects where git could not be started or was ended, with that reason. */
  readonly exited: Promise<GitExit>;
  /** Ends it at once. */
  readonly end: (reason: unknown) => void;
}

const maxStderr = 4096;

/** Starts git, and ends it at once when `signal` fires. Throws the signal's reason where it has fired. */
export function startGit(command: GitCommand, signal: AbortSignal): GitProcess {
  signal.throwIfAborted();
  const { family = false, input, onWords } = command;
  const child = spawn(command.binary, command.args, {
    cwd: command.folder,
    env: command.environment,
    detached: family,
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  let problem: { readonly reason: unknown } | null = null;
  const end = (reason: unknown): void => {
    problem ??= { reason };
    kill(child, family);
    // Whatever a wrapper of git may have left behind is not waited for, and can't write any more.
    child.stdout.destroy();
    child.stderr.destroy();
  };
  const onAbort = (): void => end(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });

  // Git may end before it has read everything, which its exit tells.
  child.stdin.on('error', () => undefined).end(input);
  let stderr = '';
  child.stderr.setEncoding('latin1').on('data', (text: string) => {
    if (stderr.length < maxStderr) stderr += text.slice(0, maxStderr - stderr.length);
    onWords?.(text);
  });
  const exited = new Promise<GitExit>((resolve, reject) => {
    const settle = (code: number | null, killedBy: NodeJS.Signals | null): void => {
      signal.removeEventListener('abort', onAbort);
      if (problem === null) resolve({ code, signal: killedBy, stderr });
      else reject(problem.reason);
    };
    child.on('error', (error) => {
      problem ??= { reason: cannotStart(command, error) };
      if (child.pid === undefined) settle(null, null);
    });
    child.on('close', settle);
  });
  return { stdout: child.stdout, exited, end };
}

function kill(child: ChildProcess, family: boolean): void {
  if (!family || child.pid === undefined) {
    child.kill('SIGKILL');
    return;
  }
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch {
    // All of it is gone.
  }
}

function cannotStart({ failed }: GitCommand, error: Error & { code?: unknown }): Error {
  return error.code === 'ENOENT'
    ? failed('the git program is not there; install git, or name it in the configuration', error)
    : failed('the git program can not be started', error);
}

/** How much git may write to its standard output, and what it means when it writes more. */
export interface OutputLimit {
  readonly bytes: number;
  readonly failure: () => Error;
}

/**
 * Runs git and hands over its output as it comes. Ends it at once when `signal` fires or `onOutput` throws, and rejects
 * with that reason. Settles only when the process is gone.
 */
export async function runGit(
  command: GitCommand,
  limit: OutputLimit,
  signal: AbortSignal,
  onOutput: (chunk: Buffer) => void,
): Promise<GitExit> {
  const { stdout, exited, end } = startGit(command, signal);
  let bytes = 0;
  let ended = false;
  const stop = (reason: unknown): void => {
    ended = true;
    end(reason);
  };
  stdout.on('data', (chunk: Buffer) => {
    if (ended || signal.aborted) return;
    bytes += chunk.length;
    if (bytes > limit.bytes) return stop(limit.failure());
    try {
      onOutput(chunk);
    } catch (error) {
      stop(error);
    }
  });
  return await exited;
}

/**
 * The whole environment of a git process: nothing of the server's but the PATH, nobody's configuration, no question to a
 * person, and no protocol, unless `more` says otherwise.
 */
export function gitEnvironment(more: Readonly<NodeJS.ProcessEnv>): NodeJS.ProcessEnv {
  return {
    PATH: process.env['PATH'],
    LC_ALL: 'C',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_SYSTEM: '/dev/null',
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_ATTR_NOSYSTEM: '1',
    GIT_NO_REPLACE_OBJECTS: '1',
    GIT_NO_LAZY_FETCH: '1',
    GIT_ALLOW_PROTOCOL: 'none',
    GIT_TERMINAL_PROMPT: '0',
    GIT_OPTIONAL_LOCKS: '0',
    GIT_LITERAL_PATHSPECS: '1',
    // One object that claims to be larger than this fails, rather than taking the machine's memory.
    GIT_ALLOC_LIMIT: '512m',
    ...more,
  };
}

/** The version of a git program, `2.39.5`; null where it does not tell. Answers with its exit where that is no success. */
export async function gitVersion(
  command: Omit<GitCommand, 'args'>,
  signal: AbortSignal,
): Promise<{ readonly version: string | null; readonly exit: GitExit }> {
  let output = '';
  const limit = { bytes: 4096, failure: () => command.failed('the git program is none: it says too much of its version') };
  const exit = await runGit({ ...command, args: ['--version'] }, limit, signal, (chunk) => {
    output += chunk.toString('latin1');
  });
  return { version: /\d+(?:\.\d+)+/u.exec(output)?.[0] ?? null, exit };
}

/** Does a process of this number run on this machine, whoever's it is? */
export function isProcessAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}
