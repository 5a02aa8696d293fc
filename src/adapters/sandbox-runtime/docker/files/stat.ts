import { z } from 'zod';
import type { Connection } from '../connect.ts';
import { statusOf } from '../engine-errors.ts';
import { withSignal } from './with-signal.ts';

/** What is at a path of a container; links above it are followed, and it itself is not. */
export interface PathStat {
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
