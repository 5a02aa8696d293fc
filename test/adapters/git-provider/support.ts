import { once } from 'node:events';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { inspect } from 'node:util';
import { expect } from 'vitest';
import { isFailure, isFailureOf } from '../../../src/domain/failure.ts';
import type { Clock } from '../../../src/ports/clock.ts';
import type { DirectoryListing, FileQuery, GitProvider, NewPullRequest } from '../../../src/ports/git-provider.ts';
import type { ListingCache } from '../../../src/ports/listing-cache.ts';
import type { CommitDescription } from '../../contracts/git-repository.ts';

export const agents = '.skep/microagents';
export const start = 1_600_000_000;
export const everything: FileQuery = { directory: () => agents, accepts: () => true };

/** A request for the pull request of the branch `work`. */
export const pullRequestOfWork: NewPullRequest = { branch: 'work', title: 'Sell coffee', body: '', base: null, draft: false };

/** Two commits that add a file each, and one that changes a file and adds another outside the directory. */
export const simple: readonly CommitDescription[] = [
  { id: 'first', at: start, files: [[`${agents}/a.md`, '1']] },
  { id: 'second', at: start + 10, files: [[`${agents}/deploy/b.md`, '1']] },
  { id: 'third', at: start + 20, files: [[`${agents}/a.md`, '2'], ['src/x', '1']] },
];

/** A path and its date, in seconds. */
export type Dated = readonly [path: string, seconds: number];

export const simpleListing: readonly Dated[] = [[`${agents}/a.md`, start], [`${agents}/deploy/b.md`, start + 10]];

export async function list(provider: GitProvider, repository = 'acme/shop', signal?: AbortSignal): Promise<Dated[]> {
  return pairs(await provider.listFiles(repository, everything, signal));
}

/** Sorted by path. */
export function pairs({ files }: DirectoryListing): Dated[] {
  return files
    .map(({ path, createdAt }) => [path, createdAt / 1000] as const)
    .toSorted(([a], [b]) => (a < b ? -1 : Number(a > b)));
}

/** Expects a failure that shows no credential and whose message shows no path of this machine. Returns its message. */
export async function failureOf(promise: Promise<unknown>): Promise<string> {
  const error = await promise.then(
    (value) => new Error(`expected a failure, not ${inspect(value)}`),
    (error: unknown) => error,
  );
  if (!isFailure(error)) throw new Error('expected a failure', { cause: error });
  expect(inspect(error, { depth: null, showHidden: true })).not.toMatch(/ghp_|ghs_|glpat-|authorization|PRIVATE KEY/iu);
  expect(error.message).not.toContain(tmpdir());
  return error.message.replace(' ', ': ');
}

/** Returns how many seconds the failure says to wait. */
export async function secondsOf(promise: Promise<unknown>): Promise<number> {
  const error = await promise.then(() => null, (error: unknown) => error);
  if (!isFailureOf(error, 'provider_rate_limited')) throw new Error('expected a rate limit', { cause: error });
  return error.context.retryAfterSeconds;
}

export interface RecordingCache extends ListingCache {
  /** All scopes, keys and values that were passed in. */
  readonly seen: string[];
  readonly scopes: Set<string>;
  entries: Map<string, string>;
}

export function recordingCache(): RecordingCache {
  return {
    seen: [],
    scopes: new Set(),
    entries: new Map(),
    async get(scope, key) {
      this.scopes.add(scope);
      this.seen.push(scope, key);
      return this.entries.get(`${scope}\0${key}`) ?? null;
    },
    async put(scope, key, value) {
      this.seen.push(scope, key, value);
      this.entries.set(`${scope}\0${key}`, value);
    },
  };
}

/** The URL of a port on which nobody listens. */
export async function deadUrl(): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  return `http://127.0.0.1:${typeof address === 'object' ? (address?.port ?? 1) : 1}`;
}

/** A clock that ends short waits at once and records them. Long waits take their real time. */
export interface HurriedClock extends Clock {
  readonly pauses: number[];
  advance(ms: number): void;
}

export function hurriedClock(): HurriedClock {
  const pauses: number[] = [];
  let ahead = 0;
  return {
    pauses,
    now: () => Date.now() + ahead,
    after(ms, callback) {
      const isLong = ms >= 30_000;
      if (!isLong) pauses.push(ms);
      const timer = setTimeout(callback, isLong ? ms : 0);
      return () => clearTimeout(timer);
    },
    advance: (ms) => void (ahead += ms),
  };
}
