import { posix } from 'node:path';
import { extract, type Header } from 'tar-stream';
import type { Connection } from '../connect.ts';
import { streamed } from '../connection/streamed.ts';
import { statusOf } from '../engine-errors.ts';

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
