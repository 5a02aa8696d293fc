import { posix } from 'node:path';
import pLimit from 'p-limit';
import { z } from 'zod';
import { isFailure, isFailureOf } from '../../domain/failure.ts';
import type { FileEntry } from '../../domain/file-entry.ts';
import { toTimestamp } from '../http/common-schemas.ts';
import { callOf, ConnectError, type Service, type ServiceCall } from './connect-protocol.ts';
import { createWatchMethods, listEntries, maxDepth } from './directory-watch.ts';

const path = z.object({ path: z.string().default('') });
const moved = z.object({ source: z.string(), destination: z.string() });

/** The most links in a listing whose targets are looked up, and how many at once. The others have the type of a link. */
const maxFollowedLinks = 100;
const followedAtOnce = 5;

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

/** Returns E2B's `filesystem.Filesystem`, over the files of a sandbox. Source: E2B's `filesystem.proto`. */
export const createFilesystemService = (): Service => ({
  ...createWatchMethods(),
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
