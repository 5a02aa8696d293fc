import { isAbsolute } from 'node:path';

export interface GitMirrorOptions {
  /** An absolute path: a folder of its own, made if it is not there, which nobody else may read. */
  readonly root: string;
  /** How large all that is kept may be, in bytes. What was not used for the longest goes first; what is in use stays. */
  readonly limitBytes?: number;
  /** Limit of one checkout until its archive can be read, waiting for a turn included, in milliseconds. */
  readonly timeoutMs?: number;
  /** How long a host may take to say where its branches are, or send nothing while it is fetched from, in milliseconds. */
  readonly answerMs?: number;
  /** How many commits of a branch's history are brought; null is all of it. */
  readonly depth?: number | null;
  /** How many repositories are fetched or packed at the same time. */
  readonly concurrency?: number;
  /** The git program: a name that is looked up on the PATH, or a path. */
  readonly gitBinary?: string;
}

export type ResolvedOptions = Required<GitMirrorOptions>;

/** Throws a `TypeError` where an option is not of its form. */
export function resolveOptions(options: GitMirrorOptions): ResolvedOptions {
  if (!isAbsolute(options.root)) throw new TypeError('The folder of the git mirrors has to be an absolute path');
  return {
    limitBytes: 20 * 2 ** 30,
    timeoutMs: 15 * 60_000,
    answerMs: 60_000,
    depth: null,
    concurrency: 4,
    gitBinary: 'git',
    ...options,
  };
}
