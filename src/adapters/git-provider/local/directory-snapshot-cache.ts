import { LRUCache } from 'lru-cache';
import type { DatedFile, FileContentId } from '../../../ports/git-provider.ts';
import { splitAtNul } from '../../shared/git-process.ts';
import { KeyedMutex } from '../../shared/keyed-mutex.ts';
import type { Semaphore } from '../../shared/semaphore.ts';
import { createSingleFlight } from '../../shared/single-flight.ts';
import { realTimers, startTimeout } from '../../shared/timeout.ts';
import { requireSuccess, failed, timedOut, tooLarge } from './local-git-failures.ts';
import type { ResolvedOptions } from './local-git-provider.ts';
import { type ObjectsRequest, type ReadObjects, readObjects } from './private-git-folders.ts';

interface SnapshotRequest extends ObjectsRequest {
  readonly directory: string;
}

interface Snapshot extends Pick<SnapshotRequest, 'oid' | 'shallow'> {
  readonly files: readonly DatedFile[];
  /** The time at which each path of the history was added. Null if it was not needed. */
  readonly dates: PathDates | null;
}

/** Maps a path, as a byte string, to the earliest committer date, in seconds, of a commit that adds it. */
type PathDates = ReadonlyMap<string, number>;

type Earlier = { readonly oid: string; readonly dates: PathDates };

interface Reading extends SnapshotRequest {
  readonly read: ReadObjects;
  readonly maxPaths: number;
}

/** Reads a directory at a commit with git: the tree and the history at the same time. Without files, the history is not needed. */
async function readSnapshot(reading: Reading, earlier: Earlier | null, signal: AbortSignal): Promise<Snapshot> {
  const { oid, shallow } = reading;
  const history = new AbortController();
  const readingDates = readDates(reading, earlier, AbortSignal.any([signal, history.signal]));
  // Its failure is handled below, after the tree is known.
  readingDates.catch(() => null);
  try {
    const tree = await readTree(reading, signal);
    if (tree.length === 0) return { oid, shallow, files: [], dates: null };
    const dated = dateFiles(tree, await readingDates) ?? (earlier && dateFiles(tree, await readDates(reading, null, signal)));
    if (dated === null) throw failed("the repository's history does not say where its files come from");
    return { oid, shallow, ...dated };
  } finally {
    history.abort();
    await readingDates.catch(() => null);
  }
}

/** Returns the data that can be reused. Dates are valid only if the history is cut off at the same commits. */
function reusableDates(earlier: Snapshot | undefined, { oid, shallow }: SnapshotRequest): Earlier | null {
  if (earlier === undefined || earlier.dates === null || earlier.shallow !== shallow) return null;
  return earlier.oid.length === oid.length ? { oid: earlier.oid, dates: earlier.dates } : null;
}

const regularFile = /^100\d{3} blob ([0-9a-f]+)\t/u;

/** Returns the regular files, with their paths as byte strings. */
async function readTree({ read, maxPaths, oid, directory }: Reading, signal: AbortSignal): Promise<FileContentId[]> {
  const prefix = directory === '' ? '' : `${Buffer.from(directory, 'utf8').toString('latin1')}/`;
  const files: FileContentId[] = [];
  const collect = splitAtNul((entry) => {
    const path = entry.slice(entry.indexOf('\t') + 1);
    const blobId = regularFile.exec(entry)?.[1];
    if (blobId === undefined || !path.startsWith(prefix)) return;
    if (files.length === maxPaths) throw tooLarge(`${maxPaths} paths`);
    files.push({ path, blobId });
  }, tooLarge);
  const args = ['ls-tree', '-r', '-z', '--full-tree', oid, ...pathspec(directory)];
  requireSuccess(await read({ args }, signal, collect));
  return files;
}

/** With an earlier snapshot, reads only the difference of the two histories. Null if that is not enough to date all paths. */
async function readDates(reading: Reading, earlier: Earlier | null, signal: AbortSignal): Promise<PathDates | null> {
  const { read, maxPaths, oid, directory } = reading;
  if (earlier?.oid === oid) return earlier.dates;
  const dates = new Map(earlier?.dates);
  let anyLost = false;
  const collect = parseAdditions(({ path, seconds, lost }) => {
    anyLost ||= lost;
    dates.set(path, Math.min(seconds, dates.get(path) ?? seconds));
    if (dates.size > maxPaths) throw tooLarge(`${maxPaths} paths`);
  });
  const exit = await read({ args: logArguments(oid, directory, earlier?.oid ?? null) }, signal, collect);
  if (earlier === null) requireSuccess(exit);
  return anyLost || exit.code !== 0 ? null : dates;
}

/** Null if a path has no date. Bytes of a path that are not UTF-8 become U+FFFD. */
function dateFiles(tree: readonly FileContentId[], dates: PathDates | null): Pick<Snapshot, 'files' | 'dates'> | null {
  const files: DatedFile[] = [];
  for (const { path, blobId } of tree) {
    const seconds = dates?.get(path);
    if (seconds === undefined) return null;
    files.push({ path: Buffer.from(path, 'latin1').toString('utf8'), blobId, createdAt: seconds * 1000 });
  }
  return { files, dates };
}

// Paths in git are bytes. They are kept as byte strings (one character a byte) while they are compared, so that two paths that are not
// UTF-8 stay different.

/** Limits a command to a directory; the empty one is the whole tree. */
function pathspec(directory: string): string[] {
  return directory === '' ? [] : ['--', directory];
}

/** A commit adds a path if it has the path and none of its parents has. */
interface Addition {
  readonly path: string;
  /** The committer date, in seconds since the epoch. */
  readonly seconds: number;
  /** True if it is only in the history of `since`, and not in the history of the commit. */
  readonly lost: boolean;
}

/**
 * Returns git's arguments to list every addition below a directory in a commit's history. With `since`, only the additions that the two
 * histories do not share. Additions are few and enough to date paths, because the first commit that touches a path adds it. Every parent of
 * a merge is followed.
 */
function logArguments(oid: string, directory: string, since: string | null): string[] {
  const additions = ['--full-history', '-c', '--diff-filter=A', '--no-renames', '--ignore-submodules=none'];
  const format = ['--name-only', '-z', `--format=${headerMark}%m%ct`, '--encoding=none'];
  const commits = since === null ? [oid] : ['--left-right', `${since}...${oid}`];
  return ['log', ...additions, ...format, ...commits, ...pathspec(directory)];
}

// No path in git begins with it.
const headerMark = '/';
const lostMark = '<';
// The last second of the year 9999: a later one has no RFC 3339 form.
const lastSecond = 253_402_300_799;

/** Each commit has a header, then a line feed or an empty entry (after a merge), then the paths. */
function parseAdditions(onAddition: (addition: Addition) => void): (chunk: Buffer) => void {
  let commit = { seconds: 0, lost: false };
  let afterHeader = false;
  return splitAtNul((entry) => {
    if (entry.startsWith(headerMark)) {
      commit = { seconds: secondsOf(entry.slice(2)), lost: entry[1] === lostMark };
      afterHeader = true;
      return;
    }
    const path = afterHeader && entry.startsWith('\n') ? entry.slice(1) : entry;
    if (path !== '') onAddition({ path, ...commit });
    afterHeader = false;
  }, tooLarge);
}

/** A date that can't be parsed is the epoch, as it is for git. */
function secondsOf(text: string): number {
  const seconds = Number.parseInt(text, 10);
  return Number.isNaN(seconds) ? 0 : Math.min(Math.max(seconds, 0), lastSecond);
}

/** Caches the latest snapshot of each directory. It is used while the directory's commit is the same. */
export function createSnapshotCache(options: ResolvedOptions, semaphore: Semaphore, closing: AbortSignal) {
  const latest = new LRUCache<string, Snapshot>({
    // LRUCache takes 0 for no limit.
    max: Math.max(1, options.cacheEntries),
    maxSize: Math.max(1, options.cachePaths),
    sizeCalculation: ({ files, dates }) => Math.max(1, files.length, dates?.size ?? 0),
  });
  const reads = createSingleFlight<Snapshot>();
  // So that a slow repository takes only one place.
  const repositories = new KeyedMutex();
  const { timeoutMs, maxPaths } = options;

  /** Settles when its git processes are gone; the callers do not wait for that. */
  async function read(key: string, request: SnapshotRequest, unwanted: AbortSignal): Promise<Snapshot> {
    using limit = startTimeout(realTimers, timeoutMs, () => timedOut(timeoutMs), [unwanted, closing]);
    const readOnce = async (): Promise<Snapshot> => {
      const earlier = latest.get(key);
      if (earlier !== undefined && matchesRequest(earlier, request)) return earlier;
      const snapshot = await readObjects(options, request, limit.signal, (read, signal) =>
        readSnapshot({ ...request, read, maxPaths }, reusableDates(earlier, request), signal));
      latest.set(key, snapshot);
      return snapshot;
    };
    const { commonDir } = request.repository;
    return await repositories.runExclusive(commonDir, () => semaphore.use(limit.signal, readOnce), limit.signal);
  }

  return {
    async get(request: SnapshotRequest, signal: AbortSignal): Promise<Snapshot> {
      const { repository, directory, oid, shallow } = request;
      const key = `${repository.gitDir}\0${directory}`;
      const cached = latest.get(key);
      if (cached !== undefined && matchesRequest(cached, request)) return cached;
      return await reads.join(`${key}\0${oid}\0${shallow}`, signal, (unwanted) => read(key, request, unwanted));
    },
    settled: () => reads.settled(),
  };
}

function matchesRequest(snapshot: Snapshot, { oid, shallow }: SnapshotRequest): boolean {
  return snapshot.oid === oid && snapshot.shallow === shallow;
}
