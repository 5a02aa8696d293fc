import type { IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import type Docker from 'dockerode';
import { type Extract, extract, type Header } from 'tar-stream';
import { z } from 'zod';
import { type Engine, streamed, unlessMissing, withSignal } from './engine.ts';

/** What is at a path of a container. Links above the path are followed; the path itself is not. */
export interface PathStat {
  readonly kind: 'directory' | 'link' | 'other';
  /** The permission bits. */
  readonly mode: number;
  /** Where a link leads to in the end, as an absolute path; empty for anything else. */
  readonly linkTarget: string;
}

/** The user that the programs of a container run as. */
export interface Owner {
  readonly uid: number;
  readonly gid: number;
}

type Entry = Extract extends AsyncIterable<infer E> ? E : never;

const StatHeader = z.object({ mode: z.number(), linkTarget: z.string() });

/** Bits of a mode, as Go has them. */
const directoryBit = 2 ** 31;
const linkBit = 2 ** 27;
const maxBytes = 16 << 20;

/** Reads the file system of a container, which need not run. */
export class ContainerFiles {
  readonly #call: Engine['call'];
  readonly #container: Docker.Container;

  constructor({ docker, call }: Engine, containerId: string) {
    this.#call = call;
    this.#container = docker.getContainer(containerId);
  }

  /** Returns null if nothing is there. */
  async stat(path: string): Promise<PathStat | null> {
    const answer = await unlessMissing(this.#call((abortSignal) => this.#container.infoArchive(withSignal({ path }, abortSignal))));
    if (answer === null) return null;
    answer.resume();
    const header = String(answer.headers['x-docker-container-path-stat']);
    const { mode, linkTarget } = StatHeader.parse(JSON.parse(Buffer.from(header, 'base64').toString()));
    const has = (bit: number): boolean => Math.floor(mode / bit) % 2 === 1;
    return { kind: has(directoryBit) ? 'directory' : has(linkBit) ? 'link' : 'other', mode: mode & 0o777, linkTarget };
  }

  /** Returns the permission bits of a file, links followed. Null if there is none. */
  async permissions(path: string): Promise<number | null> {
    const found = await this.stat(path);
    const target = found?.kind === 'link' ? await this.stat(found.linkTarget) : found;
    return target?.kind === 'other' ? target.mode : null;
  }

  /** Returns the tar header of what is at the path, links followed: unlike a stat it holds the owner. Null if nothing is there. */
  async header(path: string): Promise<Header | null> {
    const found = await this.stat(path);
    return found === null ? null : this.#firstEntry(found.kind === 'link' ? found.linkTarget : path, async ({ header }) => header);
  }

  /** Returns the engine's tar of a path, which fails when the signal fires. */
  async archive(path: string, signal: AbortSignal): Promise<IncomingMessage> {
    return streamed(await this.#call((abortSignal) => this.#container.getArchive({ path, abortSignal }), { signal }), signal);
  }

  /** Returns the text of a file. Empty if there is none, or it is too large. */
  async text(path: string): Promise<string> {
    const found = await this.#firstEntry(path, async (entry) => (entry.header.size > maxBytes ? '' : text(entry)));
    return found ?? '';
  }

  /** Reads the first entry of the archive of a path, and nothing of the rest. */
  async #firstEntry<T>(path: string, take: (entry: Entry) => Promise<T>): Promise<T | null> {
    const work = this.#call(async (abortSignal) => {
      const archive = streamed(await this.#container.getArchive({ path, abortSignal }));
      const entries = extract();
      archive.on('error', (error) => entries.destroy(error));
      try {
        for await (const entry of archive.pipe(entries)) return await take(entry);
        return null;
      } finally {
        archive.destroy();
      }
    });
    return unlessMissing(work);
  }
}

/**
 * Finds the owner that `name`, `uid`, `name:group` or `uid:gid` means in the image, by its `/etc/passwd` and `/etc/group`. Null if
 * it has no such user: the engine reports that when it starts the container.
 */
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
