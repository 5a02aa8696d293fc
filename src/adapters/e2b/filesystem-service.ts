import { posix } from 'node:path';
import { LRUCache } from 'lru-cache';
import pLimit from 'p-limit';
import { z } from 'zod';
import { isFailure, isFailureOf } from '../../domain/failure.ts';
import type { FileEntry } from '../../domain/file-entry.ts';
import { toTimestamp } from '../http/common-schemas.ts';
import { realTimers, sleep } from '../shared/timeout.ts';
import { callOf, ConnectError, type Service, type ServiceCall, streamOf } from './connect-protocol.ts';

const path = z.object({ path: z.string().default('') });
const moved = z.object({ source: z.string(), destination: z.string() });
const watched = path.extend({ recursive: z.boolean().default(false), includeEntry: z.literal(false).default(false) });

/** The most entries of a directory that are listed or watched. */
const maxEntries = 10_000;

/** The most directory levels that are listed or watched. */
const maxDepth = 32;

/** The most links in a listing whose targets are looked up, and how many at once. The others have the type of a link. */
const maxFollowedLinks = 100;
const followedAtOnce = 5;

/** The interval in which a watched directory is read. */
const watchEveryMs = 500;

const types = {
  file: 'FILE_TYPE_FILE', directory: 'FILE_TYPE_DIRECTORY', symlink: 'FILE_TYPE_SYMLINK', other: 'FILE_TYPE_UNSPECIFIED',
} as const;
const typeLetters = { file: '-', directory: 'd', symlink: 'l', other: '?' } as const;

function presentEntry({ path, type, size, mode, modifiedAt, target, owner }: FileEntry): object {
  return {
    name: posix.basename(path), type: types[type], path, size: String(size), mode, permissions: typeLetters[type] + permissionsOf(mode),
    owner: nameOf(owner?.uid), group: nameOf(owner?.gid), modifiedTime: toTimestamp(modifiedAt),
    ...(target !== null && { symlinkTarget: posix.resolve(posix.dirname(path), target) }),
  };
}

/** The failures of a look at the target of a link that leads nowhere, through a file, or out of the sandbox. */
const noTarget: ReadonlySet<string> = new Set(['file_not_found', 'wrong_file_type', 'invalid_request']);

/** As in E2B, a link has the type and the mode of what it leads to, if there is something. */
async function presentFollowed({ skep, caller, sandboxId, ends }: ServiceCall, entry: FileEntry): Promise<object> {
  if (entry.type !== 'symlink') return presentEntry(entry);
  const found = await skep.files.stat(caller, sandboxId, entry.path, true, ends).catch((error: unknown) => {
    if (!isFailure(error) || !noTarget.has(error.code)) throw error;
  });
  const { type, mode } = found ?? entry;
  return { ...presentEntry(entry), type: types[type], mode };
}

async function presentList(call: ServiceCall, entries: readonly FileEntry[]): Promise<readonly object[]> {
  const links = new Set(entries.filter(({ type }) => type === 'symlink').slice(0, maxFollowedLinks));
  const limit = pLimit(followedAtOnce);
  return await Promise.all(entries.map(async (entry) =>
    (links.has(entry) ? await limit(() => presentFollowed(call, entry)) : presentEntry(entry))));
}

/** Only the sandbox knows the other names. To read them would take a second request for each entry or listing. */
function nameOf(id: number | undefined): string {
  return id === 0 ? 'root' : String(id ?? '');
}

/** Returns permission bits as `ls` shows them: `rwxr-xr-x`. */
function permissionsOf(mode: number): string {
  return Array.from('rwxrwxrwx', (letter, at) => ((mode >> (8 - at)) & 1 ? letter : '-')).join('');
}

async function listEntries({ skep, caller, sandboxId, ends }: ServiceCall, path: string, depth: number): Promise<readonly FileEntry[]> {
  const { items, next } = await skep.files.list(caller, sandboxId, path, { depth, after: null, limit: maxEntries }, ends);
  if (next === null) return items;
  throw new ConnectError('invalid_argument', `The directory has more than ${maxEntries} entries. Choose a smaller one, or less depth.`);
}

type Entries = ReadonlyMap<string, FileEntry>;

type EventType = 'EVENT_TYPE_CREATE' | 'EVENT_TYPE_WRITE' | 'EVENT_TYPE_REMOVE' | 'EVENT_TYPE_CHMOD';

/** Yields the changes between two readings of a directory. A renamed file counts as removed and created, but not as written. */
function* changesBetween(before: Entries, after: Entries): Generator<[string, EventType], void> {
  const removed = [...before].filter(([path]) => !after.has(path));
  const contents = new Set(removed.map(([, entry]) => versionOf(entry)));
  for (const [path] of removed) yield [path, 'EVENT_TYPE_REMOVE'];
  for (const [path, entry] of after) {
    const earlier = before.get(path);
    if (earlier === undefined) {
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

/** Returns the methods of clients that ask for changes, such as E2B's synchronous Python client. The server keeps the watches in memory. */
function watcherMethods(): Service {
  const watches = new LRUCache<string, Watch>({
    max: maxWatches, maxSize: maxWatchedEntries, sizeCalculation: ({ known }) => known.size || 1,
  });
  const named = z.object({ watcherId: z.string() });
  return {
    CreateWatcher: callOf(watched, async (call, message) => {
      const watcherId = call.skep.random.id('watch');
      watches.set(keyOf(call, watcherId), await startWatch(call, message));
      return { watcherId };
    }),
    GetWatcherEvents: callOf(named, async (call, { watcherId }) => {
      const watch = watches.get(keyOf(call, watcherId));
      if (watch === undefined) throw new ConnectError('not_found', `There is no watcher ${watcherId}. Watch the directory again.`);
      const { changes, next } = await readChanges(call, watch);
      watches.set(keyOf(call, watcherId), next);
      return { events: changes };
    }),
    RemoveWatcher: callOf(named, async (call, { watcherId }) => {
      watches.delete(keyOf(call, watcherId));
      return {};
    }),
  };
}

/** Returns E2B's `filesystem.Filesystem`, over the files of a sandbox. Source: E2B's `filesystem.proto`. */
export const createFilesystemService = (): Service => ({
  ...watcherMethods(),
  WatchDir: streamOf(watched, watchDir),
  Stat: callOf(path, async (call, { path }) => {
    const { skep, caller, sandboxId, ends, resolve } = call;
    return { entry: await presentFollowed(call, await skep.files.stat(caller, sandboxId, resolve(path), false, ends)) };
  }),
  MakeDir: callOf(path, async ({ skep, caller, sandboxId, ends, resolve }, { path }) => {
    const { directory, isNew } = await skep.files.makeDirectory(caller, sandboxId, resolve(path), ends);
    if (!isNew) throw new ConnectError('already_exists', 'The directory exists already.');
    return { entry: presentEntry(directory) };
  }),
  Move: callOf(moved, async (call, { source, destination }) => {
    const { skep, caller, sandboxId, ends, resolve } = call;
    return { entry: await presentFollowed(call, await skep.files.move(caller, sandboxId, resolve(source), resolve(destination), ends)) };
  }),
  ListDir: callOf(path.extend({ depth: z.int().min(0).default(1) }), async (call, { path, depth }) => {
    const entries = await listEntries(call, call.resolve(path), Math.min(Math.max(1, depth), maxDepth));
    return { entries: await presentList(call, entries) };
  }),
  // As in E2B, also removes a directory with all its content, and succeeds if nothing is there.
  Remove: callOf(path, async ({ skep, caller, sandboxId, ends, resolve }, { path }) => {
    await skep.files.remove(caller, sandboxId, resolve(path), true, ends).catch((error: unknown) => {
      if (!isFailureOf(error, 'file_not_found')) throw error;
    });
    return {};
  }),
});
