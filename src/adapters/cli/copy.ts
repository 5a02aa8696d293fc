import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { lstat, mkdtemp, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join, posix, resolve } from 'node:path';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import type { Command } from 'commander';
import { addressOf } from '../../client/connection.ts';
import { isFailure, type SkepClient } from '../../client/index.ts';
import { clientOf, CommandError, notice, stoppable, urlHelp } from './console.ts';
import { readFirstEntry, writeFirstEntry } from './first-tar-entry.ts';
import { safeLine, safeText } from './safe-text.ts';
import { discardBody, transfer } from './transfer.ts';

export function addCopy(program: Command): void {
  program.command('cp').description('copy files into a sandbox or out of it, as docker cp does; the sandbox may be paused. '
    + 'A copy into a sandbox creates missing directories, and a single file gets the present time')
    .argument('<source>', 'SANDBOX:/PATH, a path of this machine, or - for a tar on the standard input')
    .argument('<target>', 'the same; - writes a tar to the standard output')
    .option('--url <url>', urlHelp)
    .action((source: string, target: string, options: { readonly url?: string }) =>
      stoppable((signal) => copy(clientOf(options), source, target, signal)));
}

const linkAdvice = 'Give the path of its target, or copy it into a directory.';

/** A path in a sandbox. */
interface Remote {
  readonly sandbox: string;
  readonly path: string;
}

/** A local path. `-` is a tar on the standard input or output. */
type Local = string;

/** Parses `sandbox:/path`. Returns null for a path on this machine. */
function remoteOf(place: string): Remote | null {
  const [, sandbox, path] = /^([a-z0-9][a-z0-9-]*):(\/.*)$/s.exec(place) ?? [];
  return sandbox === undefined || path === undefined ? null : { sandbox, path };
}

/**
 * Copies files into or out of a sandbox, as `docker cp` does. If the target is a directory, copies into it. Otherwise the copy gets the
 * target's name. `/.` at the end of a directory means its content. A link is copied as a link. The program `tar` packs and unpacks on this
 * machine. Fails if the signal fires, and then leaves no temporary folder behind.
 */
export async function copy(client: SkepClient, source: string, target: string, signal: AbortSignal): Promise<void> {
  const [from, to] = [remoteOf(source), remoteOf(target)];
  try {
    if (from !== null && to === null) await copyOut(client, from, target, signal);
    else if (from === null && to !== null) await copyIn(client, source, to, signal);
    else throw new CommandError('Give one path in a sandbox and one on this machine: SANDBOX:/PATH LOCAL, or LOCAL SANDBOX:/PATH.');
  } catch (error) {
    const isOfSystem = error instanceof Error && 'syscall' in error;
    throw isOfSystem ? new CommandError(safeLine(error.message), { cause: error }) : error;
  }
}

function filesPath({ sandbox }: Remote, kind: 'files' | 'archive', query: { readonly path: string; readonly mode?: string }): string {
  return addressOf(`/api/v1/sandboxes/{id}/${kind}`, { id: sandbox }, query);
}

async function copyOut(client: SkepClient, from: Remote, to: Local, signal: AbortSignal): Promise<void> {
  const archive = await transfer(client, { method: 'GET', path: filesPath(from, 'archive', { path: from.path }), signal });
  try {
    if (to === '-') await pipeline(archive, process.stdout, { end: false });
    else await writeLocal(archive, from, to);
  } finally {
    archive.destroy();
  }
}

async function writeLocal(archive: Readable, { path }: Remote, to: Local): Promise<void> {
  const first = await readFirstEntry(archive);
  const onlyContent = path.endsWith('/.');
  if (onlyContent && first?.type !== 'directory') throw new CommandError(`${path.slice(0, -2)} is not a directory in the sandbox.`);
  const isInto = await isDirectory(to);
  if (isInto && first?.type !== 'file') {
    await unpack(archive, to, onlyContent);
    return;
  }
  const name = posix.basename(posix.normalize(path));
  const target = isInto ? join(to, name) : to;
  const parent = first?.type === 'file' && /[\\/]$/.test(target) ? target : dirname(resolve(target));
  if (!(await isDirectory(parent))) throw new CommandError(`There is no directory ${parent}.`);
  // A folder next to the target, so the result gets its final name only when it is complete.
  const folder = await mkdtemp(`${resolve(target)}.skep-`);
  try {
    // For a large file, tar would take as long as the rest of the copy.
    if (first?.type === 'file') await writeFirstEntry(archive, first, join(folder, name));
    else await unpack(archive, folder, false);
    // The sandbox chooses where a link leads. A later copy to this path could write anywhere on this machine.
    if ((await lstat(join(folder, name))).isSymbolicLink()) {
      throw new CommandError(`${path} is a symbolic link in the sandbox. ${linkAdvice}`);
    }
    await rename(join(folder, name), target).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'EISDIR') throw new CommandError(`${target} is a directory, but ${path} is a file. Choose another target.`);
      if (error.code === 'ENOTDIR') throw new CommandError(`${target} is a file, but ${path} is a directory. Choose another target.`);
      throw error;
    });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function copyIn(client: SkepClient, from: Local, to: Remote, signal: AbortSignal): Promise<void> {
  const upload = (archive: Readable, path: string): Promise<void> =>
    discardBody(transfer(client, { method: 'PUT', path: filesPath(to, 'archive', { path }), body: archive, signal }));
  if (from === '-') {
    await upload(process.stdin, to.path);
    return;
  }
  // Follows a link only if a slash is at the end.
  const found = await lstat(from);
  const isThere = await isRemoteDirectory(client, to, signal);
  const name = basename(resolve(from));
  if (found.isDirectory()) {
    const asContent = !isThere || basename(from) === '.';
    await sendPacked(from, '.', (archive) => upload(archive, asContent ? to.path : posix.join(to.path, name)));
    return;
  }
  if (found.isSymbolicLink()) {
    if (!isThere) throw new CommandError(`${from} is a symbolic link. ${linkAdvice}`);
    await sendPacked(dirname(resolve(from)), `./${name}`, (archive) => upload(archive, to.path));
    return;
  }
  if (!found.isFile()) throw new CommandError(`${from} is neither a file nor a directory.`);
  const path = isThere || to.path.endsWith('/') ? posix.join(to.path, name) : to.path;
  const mode = (found.mode & 0o777).toString(8).padStart(4, '0');
  const body = createReadStream(from, { highWaterMark: 1 << 20, end: Math.max(0, found.size - 1) });
  const content = found.size === 0 ? Readable.from([]) : body;
  const request = { method: 'PUT', path: filesPath(to, 'files', { path, mode }), body: content, length: found.size, signal } as const;
  await discardBody(transfer(client, request));
}

async function isDirectory(path: string): Promise<boolean> {
  return (await stat(path).catch(() => null))?.isDirectory() === true;
}

/** Returns true if the path is a directory of the sandbox. */
async function isRemoteDirectory(client: SkepClient, place: Remote, signal: AbortSignal): Promise<boolean> {
  try {
    (await transfer(client, { method: 'GET', path: filesPath(place, 'files', { path: place.path }), signal })).destroy();
    return false;
  } catch (error) {
    if (isFailure(error, 'file_not_found')) return false;
    if (isFailure(error, 'wrong_file_type')) return error.context.file_type === 'directory';
    throw error;
  }
}

/** Unpacks files as owned by the current user, and without special bits such as setuid, which only BusyBox's tar keeps. */
async function unpack(archive: Readable, folder: string, onlyContent: boolean): Promise<void> {
  const options = ['--no-same-owner', '--no-same-permissions', ...(onlyContent ? ['--strip-components=1'] : [])];
  await withTar(['-x', '-f', '-', '-C', folder, ...options], async (tar) => pipeline(archive, tar.stdin));
}

async function sendPacked(folder: string, name: string, send: (archive: Readable) => Promise<void>): Promise<void> {
  const leftOut = await withTar(['-c', '-f', '-', '-C', folder, name], async (tar) => {
    tar.stdin.end();
    await send(Readable.from(tarOutput(tar), { objectMode: false }));
  });
  if (leftOut !== '') notice(safeText(leftOut.trimEnd()));
}

type Tar = ReturnType<typeof startTar>;

function startTar(args: readonly string[]) {
  // Without the variable, macOS's tar also packs a file `._<name>` for each file with extended attributes.
  return spawn('tar', args, { stdio: ['pipe', 'pipe', 'pipe'], env: { ...process.env, COPYFILE_DISABLE: '1' } });
}

/** Runs `tar` while `use` runs. Returns its error output, for example about sockets that it left out. If tar fails, throws it. */
async function withTar(args: readonly string[], use: (tar: Tar) => Promise<void>): Promise<string> {
  const tar = startTar(args);
  const errorOutput = text(tar.stderr);
  tar.stdin.on('error', () => {});
  const used = use(tar).catch((error: unknown) => {
    tar.kill();
    throw error;
  });
  const [work, end] = await Promise.allSettled([used, once(tar, 'close')]);
  if (end.status === 'rejected') throw new CommandError('Install the program tar on this machine: cp needs it.', { cause: end.reason });
  if (work.status === 'rejected' && (isFailure(work.reason) || work.reason instanceof CommandError)) throw work.reason;
  if (tar.exitCode !== null && tar.exitCode !== 0) throw new CommandError(safeLine(await errorOutput) || 'tar failed.');
  if (work.status === 'rejected') throw work.reason;
  return await errorOutput;
}

/** Yields the output of tar. Throws if tar fails, so an incomplete archive is not taken for a complete one. */
async function* tarOutput(tar: Tar): AsyncGenerator<Uint8Array, void> {
  const closed = once(tar, 'close');
  yield* tar.stdout;
  await closed;
  if (tar.exitCode !== 0) throw new Error('tar failed');
}
