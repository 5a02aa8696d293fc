import { IncomingMessage } from 'node:http';
import { posix } from 'node:path';
import { addAbortSignal } from 'node:stream';
import { extract, type Header } from 'tar-stream';
import { z } from 'zod';
import { type Connection, statusOf, streamed, withSignal } from './engine.ts';

/** Reads the file system of a container, which need not run. */
export interface Inside {
  /** What is at the path, links followed; null where nothing is. */
  readonly look: (path: string) => Promise<Header | null>;
  /** The text of a small file; empty where there is none. */
  readonly read: (path: string) => Promise<string>;
  /** The permission bits of a file, links followed; null where there is none. Cheaper than a look. */
  readonly permissions: (path: string) => Promise<number | null>;
}

const maxLinks = 8;
const maxBytes = 1 << 20;
const isDirectory = 2 ** 31;

export function lookInside({ docker, call }: Connection, containerId: string): Inside {
  const container = docker.getContainer(containerId);

  /** The first entry of the archive of a path; the rest is not read. */
  async function first<T>(path: string, take: (header: Header, content: AsyncIterable<unknown>) => Promise<T>): Promise<T | null> {
    try {
      return await call(async (abortSignal) => {
        const archive = streamed(await container.getArchive({ path, abortSignal }));
        const entries = extract();
        archive.on('error', (error) => entries.destroy(error));
        try {
          for await (const entry of archive.pipe(entries)) return await take(entry.header, entry);
          return null;
        } finally {
          archive.destroy();
        }
      });
    } catch (error) {
      if (statusOf(error) === 404) return null;
      throw error;
    }
  }

  return {
    async look(path) {
      let at = path;
      for (let links = 0; links < maxLinks; links += 1) {
        const header = await first(at, async (found) => found);
        if (header?.type !== 'symlink') return header;
        at = posix.resolve(posix.dirname(at), header.linkname ?? '');
      }
      return null;
    },
    async read(path) {
      const text = await first(path, async (_header, content) => {
        const chunks: Uint8Array[] = [];
        let size = 0;
        for await (const chunk of content) {
          if (!(chunk instanceof Uint8Array)) continue;
          size += chunk.length;
          if (size > maxBytes) break;
          chunks.push(chunk);
        }
        return Buffer.concat(chunks).toString();
      });
      return text ?? '';
    },
    async permissions(path) {
      let at = path;
      for (let links = 0; links < maxLinks; links += 1) {
        const stat = await statOf(at);
        if (stat === null || stat.mode >= isDirectory) return null;
        if (stat.linkTarget === '') return stat.mode & 0o777;
        at = stat.linkTarget;
      }
      return null;
    },
  };

  async function statOf(path: string): Promise<{ readonly mode: number; readonly linkTarget: string } | null> {
    try {
      const answer = await call((abortSignal) => container.infoArchive({ path, abortSignal }));
      answer.resume();
      const header = answer.headers['x-docker-container-path-stat'];
      return JSON.parse(Buffer.from(String(header), 'base64').toString());
    } catch (error) {
      if (statusOf(error) === 404) return null;
      throw error;
    }
  }
}

/** What is at a path of a container; links above it are followed, and it itself is not. */
interface PathStat {
  readonly kind: 'directory' | 'link' | 'other';
  /** Where a link leads to in the end, as an absolute path; empty for what is none. */
  readonly linkTarget: string;
}

/** Answers with null where nothing is. */
export type Stat = (path: string) => Promise<PathStat | null>;

const Answer = z.object({ mode: z.number(), linkTarget: z.string() });

/** Bits of a mode, as Go has them. */
const directoryBit = 2 ** 31;
const linkBit = 2 ** 27;

export function statIn({ docker, call }: Connection, container: string): Stat {
  return async (path) => {
    try {
      const answer = await call((abortSignal) => docker.getContainer(container).infoArchive(withSignal({ path }, abortSignal)));
      answer.resume();
      const header = String(answer.headers['x-docker-container-path-stat']);
      const { mode, linkTarget } = Answer.parse(JSON.parse(Buffer.from(header, 'base64').toString()));
      const has = (bit: number): boolean => Math.floor(mode / bit) % 2 === 1;
      return { kind: has(directoryBit) ? 'directory' : has(linkBit) ? 'link' : 'other', linkTarget };
    } catch (error) {
      if (statusOf(error) === 404) return null;
      throw error;
    }
  };
}

/** Whom the programs of a container run as. */
export interface Owner {
  readonly uid: number;
  readonly gid: number;
}

/**
 * Finds whom `name`, `uid`, `name:group` or `uid:gid` means in an image, by its `/etc/passwd` and `/etc/group`. Null where
 * it has no such user: the engine says so when it starts the container.
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

/** The engine's tar of a path, which fails when the signal fires. */
export async function readArchive({ docker, call }: Connection, container: string, path: string, signal: AbortSignal): Promise<IncomingMessage> {
  const answer = await call((abortSignal) => docker.getContainer(container).getArchive(withSignal({ path }, abortSignal)), { signal });
  if (!(answer instanceof IncomingMessage)) throw new TypeError('the client answers with something else than a response');
  // A caller that has left reads no error either.
  answer.on('error', () => {});
  return addAbortSignal(signal, answer);
}
