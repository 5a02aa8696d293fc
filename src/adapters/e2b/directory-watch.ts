import { posix } from 'node:path';
import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import type { FileEntry } from '../../domain/file-entry.ts';
import { realTimers, sleep } from '../shared/timeout.ts';
import { callOf, ConnectError, type Service, type ServiceCall, streamOf } from './connect-protocol.ts';

/** The most entries of a directory that are listed or watched. */
const maxEntries = 10_000;

/** The most directory levels that are listed or watched. */
export const maxDepth = 32;

/** Throws `invalid_argument` if the directory has too many entries. */
export async function listEntries(
  { skep, caller, sandboxId, ends }: ServiceCall, path: string, depth: number,
): Promise<readonly FileEntry[]> {
  const { items, next } = await skep.files.list(caller, sandboxId, path, { depth, after: null, limit: maxEntries }, ends);
  if (next === null) return items;
  throw new ConnectError('invalid_argument', `The directory has more than ${maxEntries} entries. Choose a smaller one, or less depth.`);
}

type Entries = ReadonlyMap<string, FileEntry>;

type EventType = 'EVENT_TYPE_CREATE' | 'EVENT_TYPE_WRITE' | 'EVENT_TYPE_REMOVE' | 'EVENT_TYPE_CHMOD';

/**
 * Yields the changes between two readings of a directory. A renamed file counts as removed and created, but not as written. An entry of
 * another type is another entry.
 */
function* changesBetween(before: Entries, after: Entries): Generator<[string, EventType], void> {
  const removed = [...before].filter(([path, { type }]) => after.get(path)?.type !== type);
  const contents = new Set(removed.map(([, entry]) => versionOf(entry)));
  for (const [path] of removed) yield [path, 'EVENT_TYPE_REMOVE'];
  for (const [path, entry] of after) {
    const earlier = before.get(path);
    if (earlier?.type !== entry.type) {
      yield [path, 'EVENT_TYPE_CREATE'];
      if (entry.type === 'file' && entry.size > 0 && !contents.has(versionOf(entry))) yield [path, 'EVENT_TYPE_WRITE'];
    } else if (isWritten(earlier, entry)) yield [path, 'EVENT_TYPE_WRITE'];
    else if (earlier.mode !== entry.mode) yield [path, 'EVENT_TYPE_CHMOD'];
  }
}

/** Changes if a file is written, but not if it is renamed. */
function versionOf({ size, modifiedAt }: FileEntry): string {
  return `${size} ${modifiedAt}`;
}

/** A directory also changes with its entries, which have events of their own. */
function isWritten(earlier: FileEntry, entry: FileEntry): boolean {
  return entry.type !== 'directory' && versionOf(earlier) !== versionOf(entry);
}

/** A directory that is watched by reading it repeatedly, because no runtime reports file changes. */
interface Watch {
  readonly directory: string;
  readonly depth: number;
  /** The entries at the last reading. */
  readonly known: Entries;
}

async function readEntries(call: ServiceCall, { directory, depth }: Pick<Watch, 'directory' | 'depth'>): Promise<Entries> {
  return new Map((await listEntries(call, directory, depth)).map((entry) => [entry.path, entry]));
}

async function startWatch(call: ServiceCall, { path, recursive }: z.output<typeof watched>): Promise<Watch> {
  const watch = { directory: call.resolve(path), depth: recursive ? maxDepth : 1 };
  return { ...watch, known: await readEntries(call, watch) };
}

/** Reads the directory again. Returns the changes, with paths relative to it, and the watch for the next reading. */
async function readChanges(call: ServiceCall, watch: Watch) {
  // A sandbox that is not running changes no files, and reading one would read an archive.
  if ((await call.skep.sandboxes.get(call.caller, call.sandboxId)).status !== 'RUNNING') return { changes: [], next: watch };
  const known = await readEntries(call, watch);
  const changes = [...changesBetween(watch.known, known)].map(([path, type]) => ({ name: posix.relative(watch.directory, path), type }));
  return { changes, next: { ...watch, known } };
}

/** The interval in which a watched directory is read. */
const watchEveryMs = 500;

async function* watchDir(call: ServiceCall, message: z.output<typeof watched>): AsyncGenerator<object, void> {
  let watch = await startWatch(call, message);
  yield { start: {} };
  for (;;) {
    await sleep(realTimers, watchEveryMs, call.ends);
    const { changes, next } = await readChanges(call, watch);
    for (const filesystem of changes) yield { filesystem };
    watch = next;
  }
}

/** The most watches that are kept for clients which ask for changes, and the most entries of all of them. The oldest are forgotten. */
const maxWatches = 1000;
const maxWatchedEntries = 200_000;

/** Only clients of the same sandbox find a watch. */
function keyOf({ sandboxId }: ServiceCall, watcherId: string): string {
  return `${sandboxId} ${watcherId}`;
}

const watched = z.object({
  path: z.string().default(''), recursive: z.boolean().default(false), includeEntry: z.literal(false).default(false),
});
const named = z.object({ watcherId: z.string() });

/**
 * Returns the methods that report changes in a directory: as a stream, and to clients that ask for them, such as E2B's synchronous Python
 * client. For the latter, the server keeps the watches in memory.
 */
export function createWatchMethods(): Service {
  const watches = new LRUCache<string, Watch>({
    max: maxWatches, maxSize: maxWatchedEntries, sizeCalculation: ({ known }) => known.size || 1,
  });
  return {
    WatchDir: streamOf(watched, watchDir),
    CreateWatcher: callOf(watched, async (call, message) => {
      const watcherId = call.skep.random.id('watch');
      watches.set(keyOf(call, watcherId), await startWatch(call, message));
      return { watcherId };
    }),
    GetWatcherEvents: callOf(named, async (call, { watcherId }) => {
      const key = keyOf(call, watcherId);
      const watch = watches.get(key);
      if (watch === undefined) throw new ConnectError('not_found', `There is no watcher ${watcherId}. Watch the directory again.`);
      const { changes, next } = await readChanges(call, watch);
      // Meanwhile another request has reported the changes, or the watch was removed.
      if (watches.get(key) !== watch) return { events: [] };
      watches.set(key, next);
      return { events: changes };
    }),
    RemoveWatcher: callOf(named, async (call, { watcherId }) => {
      watches.delete(keyOf(call, watcherId));
      return {};
    }),
  };
}
