import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { posix } from 'node:path';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import type Docker from 'dockerode';
import type { Header } from 'tar-stream';
import { z } from 'zod';
import type { FileEntry, FileType } from '../../../domain/file-entry.ts';
import { type Failure, isFailure } from '../../../domain/failure.ts';
import { startDelay } from '../../shared/timeout.ts';
import { rangeOf } from '../file-content.ts';
import { refusedFiles } from '../sandbox-path.ts';
import { type Engine, messageOf, statusOf, streamed, unavailable, unlessMissing, withSignal } from './engine.ts';
import { readHead, tarOfOne } from './single-entry-tar.ts';
import { inLargeParts } from './upload-streams.ts';

/** The entry at a path of a container. Links above the path are followed; the path itself is not. */
export interface PathStat extends Pick<FileEntry, 'path' | 'type' | 'size' | 'mode' | 'modifiedAt'> {
  /** Where a link leads to in the end, as an absolute path; empty for anything else. */
  readonly linkTarget: string;
}

export interface OpenedPath {
  readonly entry: FileEntry;
  /** The rest of the archive after the header. For a file, its content comes first. The caller must destroy it. */
  readonly content: Readable;
}

/** The user that the programs of a container run as. */
export interface Owner {
  readonly uid: number;
  readonly gid: number;
}

/** The owner of unpacked entries if the image does not have the user. */
export const root: Owner = { uid: 0, gid: 0 };

const StatHeader = z.object({ mode: z.number(), size: z.number(), mtime: z.string(), linkTarget: z.string() });

/** Bits of a mode in Go. */
const directoryBit = 2 ** 31;
const linkBit = 2 ** 27;
/** Devices, pipes, sockets and other entries that are no files. */
const otherBits = [2 ** 26, 2 ** 25, 2 ** 24, 2 ** 21, 2 ** 19];
const specialBits = [[2 ** 23, 0o4000], [2 ** 22, 0o2000], [2 ** 20, 0o1000]] as const;
const maxBytes = 4 << 20;

/** Longer than any timer of the platform: the caller's signal is the limit. */
const unlimitedMs = 2 ** 31 - 1;

/** How long the engine may take to answer after an archive has ended early. */
const lastAnswerMs = 5_000;

/** Reads and changes the file system of a container, which need not run, by the engine's archives. */
export class ContainerFiles {
  readonly #call: Engine['call'];
  readonly #container: Docker.Container;

  constructor({ docker, call }: Engine, containerId: string) {
    this.#call = call;
    this.#container = docker.getContainer(containerId);
  }

  /** Returns null if nothing is there. */
  async stat(path: string): Promise<PathStat | null> {
    const response = await unlessMissing(this.#call((abortSignal) => this.#container.infoArchive(withSignal({ path }, abortSignal))));
    if (response === null) return null;
    response.resume();
    return statOf(path, response);
  }

  /** Returns the same as `stat`, but of a link's target, if that exists. */
  async statTarget(path: string): Promise<PathStat | null> {
    const found = await this.stat(path);
    return found?.type === 'symlink' ? (await this.stat(found.linkTarget)) ?? found : found;
  }

  /**
   * Opens the path. Links above it are followed. Until the content ends, the engine answers no other request about the container. Null if
   * nothing is there.
   */
  async open(path: string, signal: AbortSignal): Promise<OpenedPath | null> {
    const archive = await this.archive(path, signal);
    if (archive === null) return null;
    const { linkTarget: _, ...stat } = statOf(path, archive);
    const header = await readHead(archive);
    if (header === null && stat.type !== 'other' && !archive.destroyed) {
      // The entry was removed between the engine's stat and its archive, which is empty.
      archive.destroy();
      return null;
    }
    const seconds = Math.floor(stat.modifiedAt / 1000);
    if (header !== null && stat.type === 'file' && (header.size !== stat.size || header.mtime?.getTime() !== seconds * 1000)) {
      // The file was changed between the engine's stat and its archive. Only the header in the archive fits the content.
      return { entry: entryOf(header, path), content: archive };
    }
    const owner = header === null ? null : { uid: header.uid ?? 0, gid: header.gid ?? 0 };
    return { entry: { ...stat, target: stat.type === 'symlink' ? (header?.linkname ?? '') : null, owner }, content: archive };
  }

  /** Returns the entry with its owner, which a stat does not contain. Follows links. Null if nothing is there. */
  async entry(path: string): Promise<FileEntry | null> {
    const found = await this.statTarget(path);
    // `statTarget` has followed links, so what is still a link is broken.
    return found === null || found.type === 'symlink' ? null : await this.#read(found.path, async ({ entry }) => entry);
  }

  /** Returns the engine's tar of a path. It fails when the signal fires. Null if nothing is there, or a link that leads to itself. */
  async archive(path: string, signal: AbortSignal): Promise<IncomingMessage | null> {
    const reading = unlessMissing(this.#call((abortSignal) => this.#container.getArchive({ path, abortSignal }), { signal }));
    const response = await reading.catch((error: unknown) => {
      if (/too many links/i.test(messageOf(error))) return null;
      throw error;
    });
    return response === null ? null : streamed(response, signal);
  }

  /** Finds the owner that `name`, `uid`, `name:group` or `uid:gid` means in the image. Null if it has no such user. */
  owner(user: string): Promise<Owner | null> {
    return resolveOwner(user, async (path) => {
      // The engine itself follows links of these files too.
      const found = await this.statTarget(path);
      const content = found && await this.#read(found.path, async ({ entry: { type, size }, content }) =>
        (type === 'file' && size <= maxBytes ? text(rangeOf(content, { offset: 0, length: size }, size, () => content.destroy())) : ''));
      return content ?? '';
    });
  }

  /**
   * Unpacks a tar in a directory. With `noOverwriteDirNonDir`, the engine does not replace a directory with another type of entry, or the
   * other way round. Throws the signal's reason, or the error of the engine or of the tar. If the tar fails, it ends early, so that the
   * engine still answers: after the call, it changes nothing more. So the tar must fail when `signal` fires. The time limit of a call
   * applies only without `signal`.
   */
  async unpack(
    target: { readonly path: string; readonly noOverwriteDirNonDir?: '1' }, tar: AsyncIterable<Uint8Array>, signal?: AbortSignal,
  ): Promise<void> {
    const failures: unknown[] = [];
    const body = Readable.from(inLargeParts(untilFailure(tar, failures)), { objectMode: false });
    using later = startDelay(signal, lastAnswerMs);
    try {
      const response = await this.#call(
        (abortSignal) => this.#container.putArchive(body, withSignal(target, abortSignal)),
        signal && { signal: later.signal, limitMs: unlimitedMs },
      );
      if ('resume' in response) response.resume();
    } catch (error) {
      failures.push(error);
    } finally {
      body.destroy();
    }
    signal?.throwIfAborted();
    // If the tar itself failed, that is why the engine did not get the whole of it.
    if (failures.length > 0) throw failures[0];
  }

  /**
   * Removes the path. The engine has no request for that. But before it unpacks an entry, it removes the old file of that name. So this
   * sends an entry that can't be unpacked: a hard link to a missing file.
   */
  async remove(path: string, signal: AbortSignal): Promise<void> {
    const entry = { name: posix.basename(path), type: 'link', linkname: `.skep-${randomUUID()}` } as const;
    const error = await this.unpack({ path: posix.dirname(path) }, tarOfOne(entry), signal).then(() => null, (error: unknown) => error);
    if (error !== null && (isFailure(error) || statusOf(error) === null)) throw error;
    if ((await this.stat(path)) !== null) throw error ?? unavailable('the engine removed nothing');
  }

  /** Opens a path, and closes it when the work is done. Null if nothing is there. */
  #read<T>(path: string, work: (opened: OpenedPath) => Promise<T>): Promise<T | null> {
    return this.#call(async (signal) => {
      const opened = await this.open(path, signal);
      return opened === null ? null : await work(opened).finally(() => opened.content.destroy());
    });
  }
}

async function* untilFailure(tar: AsyncIterable<Uint8Array>, failures: unknown[]): AsyncGenerator<Uint8Array, void> {
  try {
    yield* tar;
  } catch (error) {
    failures.push(error);
  }
}

/** Returns the failure for a message that the disk is full. Null for any other message. */
export function diskFull(message: string, cause?: unknown): Failure | null {
  return /no space left|quota exceeded/i.test(message) ? unavailable({ code: 'disk_full' }, cause) : null;
}

/** Turns the engine's message about an archive that it does not unpack into the port's failure. */
export function unpackFailure(error: unknown): unknown {
  const status = statusOf(error);
  if (isFailure(error) || status === null || status === 404) return error;
  const message = messageOf(error);
  if (/cannot overwrite/i.test(message)) {
    return refusedFiles('archive', 'one of its directories is there already as something else, or the other way round; remove that first');
  }
  const full = diskFull(message, error);
  if (full !== null) return full;
  if (/name too long|no such file|not a directory|invalid/i.test(message)) {
    return refusedFiles('archive', 'one of its names is too long, leads through a file, or links to a file that is not there');
  }
  return error;
}

/** Reads the engine's stat of a path from the headers of its response. */
function statOf(path: string, { headers }: Pick<IncomingMessage, 'headers'>): PathStat {
  const header = String(headers['x-docker-container-path-stat']);
  const { mode, size, mtime, linkTarget } = StatHeader.parse(JSON.parse(Buffer.from(header, 'base64').toString()));
  const has = (bit: number): boolean => Math.floor(mode / bit) % 2 === 1;
  const type: FileType = has(directoryBit) ? 'directory' : has(linkBit) ? 'symlink' : otherBits.some(has) ? 'other' : 'file';
  const special = specialBits.reduce((bits, [bit, value]) => bits + (has(bit) ? value : 0), 0);
  // The platform's dates have no more than milliseconds.
  const micros = Number(/\.\d{3}(\d{1,3})/.exec(mtime)?.[1]?.padEnd(3, '0') ?? '0');
  return { path, type, size, mode: (mode & 0o777) + special, modifiedAt: Date.parse(mtime) + micros / 1000, linkTarget };
}

const tarTypes: Readonly<Record<string, FileType>> = { file: 'file', link: 'file', directory: 'directory', symlink: 'symlink' };

/** Returns the entry of a tar header, which has no fractions of seconds. */
export function entryOf({ type, size, mode, mtime, linkname, uid, gid }: Header, path: string): FileEntry {
  const fileType = tarTypes[type ?? 'file'] ?? 'other';
  const owner = uid === undefined || gid === undefined ? null : { uid, gid };
  const target = fileType === 'symlink' ? (linkname ?? '') : null;
  return { path, type: fileType, size, mode, modifiedAt: mtime?.getTime() ?? 0, target, owner };
}

/** Looks the user up in `/etc/passwd` and `/etc/group`. If it does not exist, the engine reports that at the container's start. */
export async function resolveOwner(user: string, read: (path: string) => Promise<string>): Promise<Owner | null> {
  const [name = '', group] = user.split(':');
  if ((name === '' || name === '0' || name === 'root') && group === undefined) return { uid: 0, gid: 0 };
  const uid = number(name);
  const gid = group === undefined ? null : number(group);
  if (uid !== null && gid !== null) return { uid, gid };

  const users = lines(await read('/etc/passwd'));
  const entry = users.find((fields) => fields[0] === name) ?? users.find((fields) => uid !== null && number(fields[2]) === uid);
  const foundUid = uid ?? number(entry?.[2]);
  if (foundUid === null) return null;
  if (group === undefined) return { uid: foundUid, gid: number(entry?.[3]) ?? 0 };
  if (gid !== null) return { uid: foundUid, gid };
  const foundGid = number(lines(await read('/etc/group')).find((fields) => fields[0] === group)?.[2]);
  return foundGid === null ? null : { uid: foundUid, gid: foundGid };
}

/** More than any image has. The sandbox can fill the file with anything. */
const maxUsers = 20_000;

function lines(text: string): string[][] {
  return text.split('\n', maxUsers).map((line) => line.split(':', 4));
}

function number(text: string | undefined): number | null {
  return text !== undefined && /^\d{1,10}$/.test(text) ? Number(text) : null;
}
