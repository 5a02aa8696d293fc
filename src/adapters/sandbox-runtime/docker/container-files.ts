import type { Readable } from 'node:stream';
import { buffer, text } from 'node:stream/consumers';
import type Docker from 'dockerode';
import { type Header, pack } from 'tar-stream';
import { z } from 'zod';
import type { FileEntry, FileType } from '../../../domain/file-entry.ts';
import { rangeOf } from '../file-content.ts';
import { readHead } from '../single-entry-tar.ts';
import { downloadArchive } from './archive-download.ts';
import { type Engine, streamed, unlessMissing, withSignal } from './engine.ts';

/** The stat of a path in a container. Links above the path are followed; the path itself is not. */
export interface PathStat extends Pick<FileEntry, 'type' | 'size' | 'mode' | 'modifiedAt'> {
  /** The final target of a link, as an absolute path; empty for anything else. */
  readonly linkTarget: string;
}

/** An opened path. The caller must close it. */
export interface OpenedPath {
  readonly entry: FileEntry;
  /** Begins with the content, if the path is a file. */
  readonly content: Readable;
  readonly close: () => void;
}

/** The user and group of a container's programs. */
export interface Owner {
  readonly uid: number;
  readonly gid: number;
}

/** The owner of unpacked files if the image does not have the user. */
export const root: Owner = { uid: 0, gid: 0 };

const StatHeader = z.object({ mode: z.number(), size: z.number(), mtime: z.string(), linkTarget: z.string() });

/** Mode bits of Go's `fs.FileMode`. */
const directoryBit = 2 ** 31;
const linkBit = 2 ** 27;
/** Devices, pipes, sockets and others. */
const otherBits = [2 ** 26, 2 ** 25, 2 ** 24, 2 ** 21, 2 ** 19];
const specialBits = [[2 ** 23, 0o4000], [2 ** 22, 0o2000], [2 ** 20, 0o1000]] as const;
const maxBytes = 16 << 20;

/** A small file or directory for `put`. */
interface SmallEntry extends Pick<Header, 'name' | 'type' | 'mode' | 'uid' | 'gid'> {
  readonly content?: string;
}

/** Reads the file system of a container, which need not run, and creates small files and directories in it. */
export class ContainerFiles {
  readonly #engine: Engine;
  readonly #container: Docker.Container;

  constructor(engine: Engine, containerId: string) {
    this.#engine = engine;
    this.#container = engine.docker.getContainer(containerId);
  }

  /** Returns null if nothing is there. */
  async stat(path: string): Promise<PathStat | null> {
    const answer = await unlessMissing(this.#engine.call((abortSignal) => this.#container.infoArchive(withSignal({ path }, abortSignal))));
    if (answer === null) return null;
    return statOf(streamed(answer.resume()).headers);
  }

  /**
   * Opens the path; links above it are followed. The engine answers no other request about the container until the content is read or
   * closed. Returns null if the file was replaced between the engine's stat and its tar.
   */
  async open(path: string, signal: AbortSignal): Promise<OpenedPath | null> {
    const { headers, tar: archive } = await downloadArchive(this.#engine, this.#container.id, path, signal);
    const { linkTarget: _, ...stat } = statOf(headers);
    const close = (): void => void archive.destroy();
    const header = await readHead(archive);
    const seconds = Math.floor(stat.modifiedAt / 1000);
    if (header !== null && stat.type === 'file' && (header.size !== stat.size || header.mtime?.getTime() !== seconds * 1000)) {
      close();
      return null;
    }
    const owner = header === null ? null : { uid: header.uid ?? 0, gid: header.gid ?? 0 };
    return {
      entry: { path, ...stat, target: stat.type === 'symlink' ? (header?.linkname ?? '') : null, owner },
      content: archive,
      close,
    };
  }

  /** Returns the permission bits of a file; links are followed. Null if there is no file. */
  async permissions(path: string): Promise<number | null> {
    const found = await this.stat(path);
    const target = found?.type === 'symlink' ? await this.stat(found.linkTarget) : found;
    return target?.type === 'file' ? target.mode : null;
  }

  /** Returns the entry at the path, with its owner, which `stat` does not have; links are followed. Null if nothing is there. */
  async entry(path: string): Promise<FileEntry | null> {
    const found = await this.stat(path);
    if (found === null) return null;
    return this.#read(found.type === 'symlink' ? found.linkTarget : path, async ({ entry }) => entry);
  }

  /** Returns the engine's tar of a path, which fails when the signal fires. */
  async archive(path: string, signal: AbortSignal): Promise<Readable> {
    return (await downloadArchive(this.#engine, this.#container.id, path, signal)).tar;
  }

  /** Resolves `name`, `uid`, `name:group` or `uid:gid` in the image. Returns null if the image has no such user. */
  owner(user: string): Promise<Owner | null> {
    return resolveOwner(user, async (path) => {
      const content = await this.#read(path, async ({ entry: { type, size }, content, close }) =>
        (type === 'file' && size <= maxBytes ? text(rangeOf(content, { offset: 0, length: size }, size, close)) : ''));
      return content ?? '';
    });
  }

  /** Creates the entries in an existing directory. */
  async put(path: string, entries: readonly SmallEntry[]): Promise<void> {
    const archive = pack();
    for (const { content = '', ...header } of entries) archive.entry(header, content);
    archive.finalize();
    const bytes = await buffer(archive);
    await this.#engine.call((abortSignal) => this.#container.putArchive(bytes, { path, abortSignal }));
  }

  /** Opens a path, and closes it after the work. Tries again if the file was replaced at that moment. Null if nothing is there. */
  #read<T>(path: string, work: (opened: OpenedPath) => Promise<T>): Promise<T | null> {
    return unlessMissing(this.#engine.call(async (signal) => {
      for (;;) {
        const opened = await this.open(path, signal);
        if (opened !== null) return await work(opened).finally(opened.close);
      }
    }));
  }
}

/** Parses the engine's stat of a path from the headers of its response. */
function statOf(headers: Readonly<Record<string, unknown>>): PathStat {
  const header = String(headers['x-docker-container-path-stat']);
  const { mode, size, mtime, linkTarget } = StatHeader.parse(JSON.parse(Buffer.from(header, 'base64').toString()));
  const has = (bit: number): boolean => Math.floor(mode / bit) % 2 === 1;
  const type: FileType = has(directoryBit) ? 'directory' : has(linkBit) ? 'symlink' : otherBits.some(has) ? 'other' : 'file';
  const special = specialBits.reduce((bits, [bit, value]) => bits + (has(bit) ? value : 0), 0);
  // A `Date` keeps only milliseconds.
  const micros = Number(/\.\d{3}(\d{1,3})/.exec(mtime)?.[1]?.padEnd(3, '0') ?? '0');
  return { type, size, mode: (mode & 0o777) + special, modifiedAt: Date.parse(mtime) + micros / 1000, linkTarget };
}

/** Reads `/etc/passwd` and `/etc/group`. If the user is missing, the engine reports that when it starts the container. */
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

function lines(text: string): string[][] {
  return text.split('\n').map((line) => line.split(':'));
}

function number(text: string | undefined): number | null {
  return text !== undefined && /^\d{1,10}$/.test(text) ? Number(text) : null;
}
