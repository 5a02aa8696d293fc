import type { DatedFile } from '../../../ports/git-provider.ts';
import { type GitCommand, gitEnvironment, type GitExit, type OutputLimit, runGit } from '../../shared/git-process.ts';
import { exitFailure, failed, tooLarge } from './failures.ts';
import {
  type Addition, additionArguments, fromByteString, readAdditions, readTree, toByteString, treeArguments,
} from './git-commands.ts';
import type { ResolvedOptions } from './local-git-provider.ts';
import { objectStoresOf, refuseStrayObjects } from './object-folders.ts';
import { createShadow } from './private-git-folder.ts';
import type { LocalRepository } from './repository-location.ts';

/** What is known of a directory at one commit. */
export interface Snapshot {
  readonly oid: string;
  /** Where the history is cut off, as `readShallow` tells it. */
  readonly shallow: string;
  readonly files: readonly DatedFile[];
  /** When each path that the history ever had came into it; null where nobody needed to know. */
  readonly dates: PathDates | null;
}

/** From a path, as a byte string, to the earliest committer date, in seconds, of a commit that adds it. */
type PathDates = ReadonlyMap<string, number>;

/** The dates of the paths; null where one has none. */
function dateFiles(paths: readonly string[], dates: PathDates): DatedFile[] | null {
  const files: DatedFile[] = [];
  for (const path of paths) {
    const seconds = dates.get(path);
    if (seconds === undefined) return null;
    files.push({ path: fromByteString(path), createdAt: seconds * 1000 });
  }
  return files;
}

function undated(): Error {
  return failed("the repository's history does not say where its files come from");
}

export interface SnapshotRequest {
  readonly repository: LocalRepository;
  readonly directory: string;
  readonly oid: string;
  readonly shallow: string;
}

/** Reads a directory at a commit with git. What an earlier snapshot of it knows is not read again. */
export async function readSnapshot(
  options: ResolvedOptions,
  request: SnapshotRequest,
  earlier: Snapshot | null,
  signal: AbortSignal,
): Promise<Snapshot> {
  const stores = await objectStoresOf(request.repository);
  const shadow = await createShadow(options.temporaryFolder, request.oid, request.shallow);
  const command = {
    binary: options.gitBinary,
    folder: shadow.folder,
    environment: gitEnvironment({ GIT_DIR: shadow.folder, GIT_OBJECT_DIRECTORY: stores[0] }),
    failed,
    limit: { bytes: options.maxOutputBytes, failure: () => tooLarge(`${options.maxOutputBytes} bytes`) },
  };
  const reading = new AbortController();
  const either = AbortSignal.any([signal, reading.signal]);
  const strays = refuseStrayObjects(request.repository, stores, either);
  const snapshot = readWith(command, options.maxPaths, request, usable(earlier, request), either);
  try {
    const [read] = await Promise.all([snapshot, strays]);
    return read;
  } finally {
    reading.abort();
    await Promise.allSettled([snapshot, strays]);
    await shadow.remove();
  }
}

type Command = Omit<GitCommand, 'args'> & { readonly limit: OutputLimit };
type Known = { readonly oid: string; readonly dates: PathDates };

/** Dates hold on only where the history is cut off at the same place. */
function usable(earlier: Snapshot | null, { oid, shallow }: SnapshotRequest): Known | null {
  if (earlier === null || earlier.dates === null || earlier.shallow !== shallow) return null;
  return earlier.oid.length === oid.length ? { oid: earlier.oid, dates: earlier.dates } : null;
}

/** Git lists the tree and tells the history at the same time; where the tree has nothing, the history is not needed. */
async function readWith(
  command: Command,
  maxPaths: number,
  request: SnapshotRequest,
  known: Known | null,
  signal: AbortSignal,
): Promise<Snapshot> {
  const { oid, shallow } = request;
  const history = new AbortController();
  const telling = readDates(command, maxPaths, request, known, AbortSignal.any([signal, history.signal]));
  // Its failure is looked at below, once the tree is known.
  telling.catch(() => null);
  try {
    const paths = await listPaths(command, maxPaths, request, signal);
    if (paths.length === 0) return { oid, shallow, files: [], dates: null };
    const dates = await telling;
    const files = dates === null ? null : dateFiles(paths, dates);
    if (files !== null) return { oid, shallow, files, dates };
    if (known === null) throw undated();
  } finally {
    history.abort();
    await telling.catch(() => null);
  }
  return await readWith(command, maxPaths, request, null, signal);
}

async function listPaths(
  command: Command,
  maxPaths: number,
  { oid, directory }: SnapshotRequest,
  signal: AbortSignal,
): Promise<string[]> {
  const prefix = directory === '' ? '' : `${toByteString(directory)}/`;
  const paths: string[] = [];
  const collect = readTree((path) => {
    if (!path.startsWith(prefix)) return;
    if (paths.length === maxPaths) throw tooLarge(`${maxPaths} paths`);
    paths.push(path);
  });
  demandSuccess(await runGit({ ...command, args: treeArguments(oid, directory) }, command.limit, signal, collect));
  return paths;
}

/**
 * The dates of all paths. With what is known of an earlier commit only the difference of the two histories is read, and
 * that decides: nothing in it that the later history lacks can have dated a path, or the answer is null. So it is where
 * the earlier commit is gone.
 */
async function readDates(
  command: Command,
  maxPaths: number,
  { oid, directory }: SnapshotRequest,
  known: Known | null,
  signal: AbortSignal,
): Promise<PathDates | null> {
  if (known?.oid === oid) return known.dates;
  const dates = new Map(known?.dates);
  let lost = false;
  const collect = readAdditions((addition) => {
    lost ||= addition.lost;
    note(dates, addition);
    if (dates.size > maxPaths) throw tooLarge(`${maxPaths} paths`);
  });
  const args = additionArguments(oid, directory, known?.oid ?? null);
  const exit = await runGit({ ...command, args }, command.limit, signal, collect);
  if (known === null) demandSuccess(exit);
  return lost || exit.code !== 0 ? null : dates;
}

/** The earliest addition counts, in whatever order they come. */
function note(dates: Map<string, number>, { path, seconds }: Addition): void {
  const noted = dates.get(path);
  if (noted === undefined || seconds < noted) dates.set(path, seconds);
}

function demandSuccess(exit: GitExit): void {
  const failure = exitFailure(exit);
  if (failure !== null) throw failure;
}
