import { posix } from 'node:path';
import { z } from 'zod';
import type { FileEntry } from '../../domain/file-entry.ts';
import { toTimestamp } from '../http/common-schemas.ts';
import { pause, realTimers } from '../shared/timeout.ts';
import { callOf, ConnectError, type Service, streamOf } from './connect-protocol.ts';
import type { ServiceCall } from './process-service.ts';

const path = z.object({ path: z.string().default('') });
const watched = path.extend({ recursive: z.boolean().default(false), includeEntry: z.literal(false).default(false) });

/** The most entries of a directory that are listed or watched. */
const maxEntries = 10_000;

/** The most directory levels that are listed or watched. */
const maxDepth = 32;

/** The interval in which a watched directory is read. */
const watchEveryMs = 500;

/** Resolves a path relative to the working directory of the sandbox. */
export function resolvePath({ workingDir }: Pick<ServiceCall, 'workingDir'>, path: string): string {
  return posix.resolve(workingDir, path);
}

const types = {
  file: 'FILE_TYPE_FILE', directory: 'FILE_TYPE_DIRECTORY', symlink: 'FILE_TYPE_SYMLINK', other: 'FILE_TYPE_UNSPECIFIED',
} as const;
const typeLetters = { file: '-', directory: 'd', symlink: 'l', other: '?' } as const;

function presentEntry({ path, type, size, mode, modifiedAt, target, owner }: FileEntry): object {
  return {
    name: posix.basename(path), type: types[type], path, size: String(size), mode, permissions: typeLetters[type] + permissionsOf(mode),
    owner: String(owner?.uid ?? ''), group: String(owner?.gid ?? ''), modifiedTime: toTimestamp(modifiedAt),
    ...(target !== null && { symlinkTarget: target }),
  };
}

/** Returns permission bits as `ls` shows them: `rwxr-xr-x`. */
function permissionsOf(mode: number): string {
  return Array.from('rwxrwxrwx', (letter, at) => ((mode >> (8 - at)) & 1 ? letter : '-')).join('');
}

async function listEntries({ skep, scope, sandboxId, ends }: ServiceCall, path: string, depth: number): Promise<readonly FileEntry[]> {
  const { items, next } = await skep.files.list(scope, sandboxId, path, { depth, after: null, limit: maxEntries }, ends);
  if (next === null) return items;
  throw new ConnectError('resource_exhausted', `The directory has more than ${maxEntries} entries. Choose a smaller one, or less depth.`);
}

/** File entries by their paths. */
type Entries = ReadonlyMap<string, FileEntry>;

type EventType = 'EVENT_TYPE_CREATE' | 'EVENT_TYPE_WRITE' | 'EVENT_TYPE_REMOVE' | 'EVENT_TYPE_CHMOD';

/** Yields the changes between two readings of a directory. A renamed file counts as removed and created. */
function* changesBetween(before: Entries, after: Entries): Generator<[string, EventType], void> {
  for (const path of before.keys()) if (!after.has(path)) yield [path, 'EVENT_TYPE_REMOVE'];
  for (const [path, entry] of after) {
    const earlier = before.get(path);
    if (earlier === undefined) yield [path, 'EVENT_TYPE_CREATE'];
    else if (earlier.modifiedAt !== entry.modifiedAt || earlier.size !== entry.size) yield [path, 'EVENT_TYPE_WRITE'];
    else if (earlier.mode !== entry.mode) yield [path, 'EVENT_TYPE_CHMOD'];
  }
}

/** Reports changes in a directory by reading it repeatedly, because no runtime reports file changes. */
async function* watchDir(call: ServiceCall, { path, recursive }: z.output<typeof watched>): AsyncGenerator<object, void> {
  const directory = resolvePath(call, path);
  const readEntries = async (): Promise<Entries> =>
    new Map((await listEntries(call, directory, recursive ? maxDepth : 1)).map((entry) => [entry.path, entry]));
  let known = await readEntries();
  yield { start: {} };
  for (;;) {
    await pause(realTimers, watchEveryMs, call.ends);
    // A sandbox that is not running changes no files, and reading one would read an archive.
    if ((await call.skep.sandboxes.get(call.scope, call.sandboxId)).status !== 'RUNNING') continue;
    const seen = await readEntries();
    for (const [changed, type] of changesBetween(known, seen)) yield { filesystem: { name: posix.relative(directory, changed), type } };
    known = seen;
  }
}

/** E2B's `filesystem.Filesystem`, over the files of a sandbox. Source: E2B's `filesystem.proto`. */
export const filesystemService: Service<ServiceCall> = {
  WatchDir: streamOf(watched, watchDir),
  Stat: callOf(path, async (call: ServiceCall, { path }) => {
    const { skep, scope, sandboxId, ends } = call;
    return { entry: presentEntry(await skep.files.stat(scope, sandboxId, resolvePath(call, path), false, ends)) };
  }),
  MakeDir: callOf(path, async (call: ServiceCall, { path }) => {
    const { skep, scope, sandboxId, ends } = call;
    const { directory, isNew } = await skep.files.makeDirectory(scope, sandboxId, resolvePath(call, path), ends);
    if (!isNew) throw new ConnectError('already_exists', 'The directory exists already.');
    return { entry: presentEntry(directory) };
  }),
  Move: callOf(z.object({ source: z.string(), destination: z.string() }), async (call: ServiceCall, { source, destination }) => {
    const { skep, scope, sandboxId, ends } = call;
    const moved = await skep.files.move(scope, sandboxId, resolvePath(call, source), resolvePath(call, destination), ends);
    return { entry: presentEntry(moved) };
  }),
  ListDir: callOf(path.extend({ depth: z.int().min(0).default(1) }), async (call: ServiceCall, { path, depth }) =>
    ({ entries: (await listEntries(call, resolvePath(call, path), Math.min(Math.max(1, depth), maxDepth))).map(presentEntry) })),
  // As in E2B, also removes a directory with all its content.
  Remove: callOf(path, async (call: ServiceCall, { path }) => {
    const { skep, scope, sandboxId, ends } = call;
    await skep.files.remove(scope, sandboxId, resolvePath(call, path), true, ends);
    return {};
  }),
};
