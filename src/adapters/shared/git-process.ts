import { type ChildProcess, spawn } from 'node:child_process';
import { Readable } from 'node:stream';
import type { CheckResult } from '../../ports/check-result.ts';

export interface GitCommand {
  readonly binary: string;
  readonly args: readonly string[];
  readonly folder: string;
  readonly environment: NodeJS.ProcessEnv;
  /** Creates the failure if git can't be started. */
  readonly failed: (reason: string, cause?: unknown) => Error;
  /** The standard input. Empty if left out. */
  readonly input?: string | AsyncIterable<Uint8Array>;
  /** True if git starts programs that must end with it. Then git gets its own session, which is slow on a busy machine. */
  readonly ownSession?: boolean;
  readonly onStderr?: (text: string) => void;
}

export interface GitExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** The beginning of the standard error, for the log only. */
  readonly stderr: string;
}

export interface GitProcess {
  /** Git waits until this is read. */
  readonly stdout: Readable;
  /** Settles when the process has ended. Rejects if git could not be started, or with the reason that was given to `end`. */
  readonly exited: Promise<GitExit>;
  readonly end: (reason: unknown) => void;
}

const maxStderr = 4096;

/** Starts git, and kills it when `signal` fires. Throws the signal's reason if it has already fired. */
export function startGit(command: GitCommand, signal: AbortSignal): GitProcess {
  signal.throwIfAborted();
  const { binary, args, folder, environment, ownSession = false, input, onStderr } = command;
  const child = spawn(binary, args, { cwd: folder, env: environment, detached: ownSession });
  let problem: { readonly reason: unknown } | null = null;
  const end = (reason: unknown): void => {
    problem ??= { reason };
    kill(child, ownSession);
    // A program that a wrapper of git started may still run. Nothing waits for it, and its output is closed.
    child.stdout.destroy();
    child.stderr.destroy();
  };
  const onAbort = (): void => end(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });

  // Git may exit before it has read all input. Its exit code shows whether that is an error.
  child.stdin.on('error', () => undefined);
  if (typeof input === 'object') Readable.from(input).on('error', end).pipe(child.stdin);
  else child.stdin.end(input);
  let stderr = '';
  child.stderr.setEncoding('latin1').on('data', (text: string) => {
    stderr = (stderr + text).slice(0, maxStderr);
    onStderr?.(text);
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

function kill(child: ChildProcess, ownSession: boolean): void {
  try {
    if (ownSession && child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
    else child.kill('SIGKILL');
  } catch {
    // All its processes are gone.
  }
}

function cannotStart({ failed }: GitCommand, error: Error & { code?: unknown }): Error {
  return error.code === 'ENOENT'
    ? failed('the git program is not there; install git, or name it in the configuration', error)
    : failed('the git program can not be started', error);
}

/** The maximum size of git's standard output, and the failure if git writes more. */
export interface OutputLimit {
  readonly bytes: number;
  readonly failure: () => Error;
}

/** Runs git. If `signal` fires or `onOutput` throws, kills git and rejects with that reason. Settles only after the process has ended. */
export async function runGit(
  command: GitCommand, limit: OutputLimit, signal: AbortSignal, onOutput: (chunk: Buffer) => void,
): Promise<GitExit> {
  const { stdout, exited, end } = startGit(command, signal);
  let bytes = 0;
  stdout.on('data', (chunk: Buffer) => {
    if (stdout.destroyed) return;
    bytes += chunk.length;
    try {
      if (bytes > limit.bytes) throw limit.failure();
      onOutput(chunk);
    } catch (error) {
      end(error);
    }
  });
  return await exited;
}

/** The whole environment of git: the server's PATH, but no configuration, prompts or protocols, unless `more` adds them. */
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
    // A larger object fails instead of using up the machine's memory.
    GIT_ALLOC_LIMIT: '512m',
    ...more,
  };
}

// The first version that can read settings, and so the credential, from environment variables.
const oldestVersion = '2.31';

/** Checks that git is new enough. Throws if it can't be started. */
export async function checkGit(command: Omit<GitCommand, 'args' | 'environment'>, signal: AbortSignal): Promise<CheckResult> {
  let output = '';
  const limit = { bytes: 4096, failure: () => command.failed('the git program is none: it says too much of its version') };
  const exit = await runGit({ ...command, environment: gitEnvironment({}), args: ['--version'] }, limit, signal, (chunk) => {
    output += chunk.toString('latin1');
  });
  const version = /\d+(?:\.\d+)+/u.exec(output)?.[0];
  if (exit.code !== 0 || version === undefined) return { ok: false, detail: 'the program git could not be run; install git' };
  const isOld = version.localeCompare(oldestVersion, 'en', { numeric: true }) < 0;
  return isOld
    ? { ok: false, detail: `git ${version} is too old; install ${oldestVersion} or newer` }
    : { ok: true, detail: `git ${version}` };
}

/** The id of an object, in SHA-1 or SHA-256. */
export const oidForm = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/u;

// Characters that git refuses in the name of a ref, and the replacement character of invalid UTF-8. The other rules apply to each segment.
// oxlint-disable-next-line no-control-regex -- control characters are what it looks for
const unsafe = /[\0-\u0020\u007f~^:?*[\\\ufffd]|@\{|\.\./u;

/** Returns whether git accepts the name of a ref below `refs`. Such a name can't lead out of a folder. */
export function isRefName(name: string): boolean {
  if (!name.isWellFormed() || unsafe.test(name)) return false;
  return name.split('/').every((part) => part !== '' && !part.startsWith('.') && !part.endsWith('.') && !part.endsWith('.lock'));
}

export function isSha256(oid: string): boolean {
  return oid.length === 64;
}

/** Returns the configuration of a private git folder with the same hash algorithm as the given id. */
export function privateGitConfig(oid: string | null, isBare = true): string {
  const sha256 = oid !== null && isSha256(oid);
  const settings = [`repositoryFormatVersion = ${sha256 ? 1 : 0}`, `bare = ${isBare}`, 'useReplaceRefs = false'];
  const core = `[core]\n${settings.map((setting) => `\t${setting}\n`).join('')}[gc]\n\tauto = 0\n`;
  return sha256 ? `${core}[extensions]\n\tobjectFormat = sha256\n` : core;
}

/** Splits a stream of NUL-terminated entries into byte strings. */
export function splitAtNul(onEntry: (entry: string) => void): (chunk: Buffer) => void {
  let rest = '';
  return (chunk) => {
    const entries = (rest + chunk.toString('latin1')).split('\0');
    rest = entries.pop() ?? '';
    for (const entry of entries) onEntry(entry);
  };
}
