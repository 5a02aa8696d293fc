import { tmpdir } from 'node:os';

export interface LocalGitOptions {
  /** The folder below which repositories are addressed. */
  readonly root: string;
  /** Limit of one listing, waiting for a slot included, in milliseconds. */
  readonly timeoutMs?: number;
  /** How many repositories are read by git at the same time. */
  readonly concurrency?: number;
  /** The git program: a name that is looked up on the PATH, or a path. */
  readonly gitBinary?: string;
  /** How many listings are remembered. */
  readonly cacheEntries?: number;
  /** How many paths the remembered listings hold together. */
  readonly cachePaths?: number;
  /** How many paths a directory may hold, those that its history has lost included. */
  readonly maxPaths?: number;
  /** How much one git process may write, in bytes. */
  readonly maxOutputBytes?: number;
  /** Where the private folders go that git runs in. */
  readonly temporaryFolder?: string;
}

export type ResolvedOptions = Required<LocalGitOptions>;

export function resolveOptions(options: LocalGitOptions): ResolvedOptions {
  return {
    timeoutMs: 30_000,
    concurrency: 4,
    gitBinary: 'git',
    cacheEntries: 256,
    cachePaths: 500_000,
    maxPaths: 100_000,
    maxOutputBytes: 64 * 1024 * 1024,
    temporaryFolder: tmpdir(),
    ...options,
  };
}
