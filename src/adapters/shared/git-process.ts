import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { onAbort } from '../../ports/abort-signals.ts';
import type { CheckResult } from '../../ports/check-result.ts';
import { providerFailures } from './provider-failures.ts';
import { spawned } from './spawned.ts';

interface GitRunnerOptions {
  /** The git program: a name that is looked up on the PATH, or a path. */
  readonly binary: string;
  /** The provider in failures. */
  readonly provider: string;
  /** Added to the clean environment. */
  readonly environment?: NodeJS.ProcessEnv;
  /** True if git starts programs that must end with it. Then git gets its own session, which is slow on a busy machine. */
  readonly ownSession?: boolean;
}

export interface GitCommand {
  readonly args: readonly string[];
  /** The git folder, in which git also runs. */
  readonly folder: string;
  /** Added to the runner's environment. */
  readonly environment?: NodeJS.ProcessEnv;
  /** The standard input. Empty if left out. */
  readonly input?: string | AsyncIterable<Uint8Array>;
  /** The maximum size of git's standard output. Default: 64 MiB if it is collected, otherwise no limit. */
  readonly maxOutputBytes?: number;
  readonly onStderr?: (text: string) => void;
}

export interface GitExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** The beginning of the standard error, for the log only. */
  readonly stderr: string;
}

export interface GitResult extends GitExit {
  /** Empty if `onOutput` got the output. */
  readonly stdout: string;
}

interface GitProcess {
  /** Git waits until this is read. */
  readonly stdout: Readable;
  /** Settles when the process has ended. Rejects with the reason that was given to `end`. */
  readonly exited: Promise<GitExit>;
  /** Kills git. Does nothing if the process has ended. */
  readonly end: (reason: unknown) => void;
}

const maxCollectedBytes = 64 * 1024 * 1024;

export type GitRunner = ReturnType<typeof createGitRunner>;

/** If the signal of a command fires, git is killed, and the command fails with the signal's reason. */
export function createGitRunner(options: GitRunnerOptions) {
  const { provider } = options;
  const { tooLarge } = providerFailures(provider);
  return {
    provider,
    /** If `onOutput` throws, git is killed, and that error is thrown. Settles only after the process has ended. */
    async run(command: GitCommand, signal: AbortSignal, onOutput?: (chunk: Buffer) => void): Promise<GitResult> {
      const chunks: Buffer[] = [];
      const take = onOutput ?? ((chunk: Buffer): void => void chunks.push(chunk));
      const limit = command.maxOutputBytes ?? (onOutput === undefined ? maxCollectedBytes : Number.POSITIVE_INFINITY);
      const { stdout, exited, end } = await startGit(options, command, signal);
      let bytes = 0;
      stdout.on('data', (chunk: Buffer) => {
        if (stdout.destroyed) return;
        bytes += chunk.length;
        try {
          if (bytes > limit) throw tooLarge(`${limit} bytes`);
          take(chunk);
        } catch (error) {
          end(error);
        }
      });
      const exit = await exited;
      return { ...exit, stdout: Buffer.concat(chunks).toString('utf8') };
    },
    /** Yields git's output, then calls `checkExit` with git's exit. If the output is not read to its end, git is killed. */
    async *stream(command: GitCommand, signal: AbortSignal, checkExit: (exit: GitExit) => void): AsyncGenerator<Buffer> {
      const { stdout, exited, end } = await startGit(options, command, signal);
      // Handled below. If reading fails, that error is thrown instead.
      exited.catch(() => null);
      try {
        yield* stdout as AsyncIterable<Buffer>;
        checkExit(await exited);
      } finally {
        end(new Error('what git prints is not read any more'));
        await exited.catch(() => null);
      }
    },
  };
}

const maxStderr = 4096;

/** Rejects if git can't be started, or with the signal's reason if it has already fired. */
async function startGit(options: GitRunnerOptions, command: GitCommand, signal: AbortSignal): Promise<GitProcess> {
  signal.throwIfAborted();
  const { binary, provider, ownSession = false } = options;
  const { args, folder, input, onStderr } = command;
  const environment = { ...cleanEnvironment(), GIT_DIR: folder, ...options.environment, ...command.environment };
  const child = await spawned(spawn(binary, args, { cwd: folder, env: environment, detached: ownSession })).catch((error: Error) => {
    throw cannotStart(provider, folder, error);
  });
  let problem: { readonly reason: unknown } | null = null;
  let hasEnded = false;
  const end = (reason: unknown): void => {
    // Its pid may belong to another process by now.
    if (hasEnded) return;
    problem ??= { reason };
    kill(child, ownSession);
    // A program that a wrapper of git started may still run. Nothing waits for it, and its output is closed.
    child.stdout.destroy();
    child.stderr.destroy();
  };
  // The signal may have fired while git was started.
  const ending = onAbort(signal, () => end(signal.reason));

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
      hasEnded = true;
      ending[Symbol.dispose]();
      if (problem === null) resolve({ code, signal: killedBy, stderr });
      else reject(problem.reason);
    };
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

function cannotStart(provider: string, folder: string, error: Error & { code?: unknown }): Error {
  const { failed } = providerFailures(provider);
  if (error.code !== 'ENOENT') return failed('the git program can not be started', error);
  // The system reports a missing working folder like a missing program.
  return failed(existsSync(folder) ? 'the git program is not there; install git' : 'the folder in which git runs is not there', error);
}

/** The server's PATH, but no configuration, prompts or protocols. */
function cleanEnvironment(): NodeJS.ProcessEnv {
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
  };
}

// The first version that can read settings, and so the credential, from environment variables.
const oldestVersion = '2.31';

/** Checks that git is new enough. Throws if it can't be started. */
export async function checkGit(git: GitRunner, folder: string, signal: AbortSignal): Promise<CheckResult> {
  const { code, stdout } = await git.run({ args: ['--version'], folder, maxOutputBytes: 4096 }, signal);
  const version = /\d+(?:\.\d+)+/u.exec(stdout)?.[0];
  if (code !== 0 || version === undefined) return { ok: false, detail: 'the program git could not be run; install git' };
  const isOld = version.localeCompare(oldestVersion, 'en', { numeric: true }) < 0;
  return isOld
    ? { ok: false, detail: `git ${version} is too old; install ${oldestVersion} or newer` }
    : { ok: true, detail: `git ${version}` };
}

/** Makes a private git folder without objects and branches, in which the history ends at the commits that `shallow` lists. */
export async function makeGitFolder(
  folder: string, oid: string, { head = 'ref: refs/heads/none', shallow = '' }: { readonly head?: string; readonly shallow?: string } = {},
): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await Promise.all([
    mkdir(join(folder, 'objects')),
    mkdir(join(folder, 'refs')),
    writeFile(join(folder, 'HEAD'), `${head}\n`),
    writeFile(join(folder, 'config'), privateGitConfig(oid)),
    ...(shallow === '' ? [] : [writeFile(join(folder, 'shallow'), shallow)]),
  ]);
}

/** Returns the configuration of a private git folder with the same hash algorithm as the given id. */
export function privateGitConfig(oid: string | null, isBare = true): string {
  const sha256 = oid !== null && isSha256(oid);
  const settings = [`repositoryFormatVersion = ${sha256 ? 1 : 0}`, `bare = ${isBare}`, 'useReplaceRefs = false'];
  const core = `[core]\n${settings.map((setting) => `\t${setting}\n`).join('')}[gc]\n\tauto = 0\n`;
  return sha256 ? `${core}[extensions]\n\tobjectFormat = sha256\n` : core;
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

/** No path of a file is longer. */
const maxEntryLength = 1 << 20;

/** Splits a stream of NUL-terminated entries into byte strings. Throws the result of `tooLarge` if an entry is too long. */
export function splitAtNul(onEntry: (entry: string) => void, tooLarge: (limit: string) => Error): (chunk: Buffer) => void {
  // Joined only at its end: to append each chunk to a long text would take quadratic time.
  let parts: string[] = [];
  let length = 0;
  return (chunk) => {
    const [first = '', ...others] = chunk.toString('latin1').split('\0');
    parts.push(first);
    length += first.length;
    for (const next of others) {
      onEntry(parts.join(''));
      parts = [next];
      ({ length } = next);
    }
    if (length > maxEntryLength) throw tooLarge('1 MiB in one name or subject');
  };
}
