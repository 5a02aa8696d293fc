import { posix } from 'node:path';
import { Readable } from 'node:stream';
import { pack, type Pack } from 'tar-stream';
import { isFailure } from '../../../domain/failure.ts';
import { quoted, refusedFiles } from '../sandbox-path.ts';
import { addEntry, tarEntries, type TarEntry, tarHeader, type TarName, tarOf, throughLink } from '../tar.ts';
import type { ContainerFiles, Owner } from './container-files.ts';
import { type Engine, messageOf, statusOf, unavailable, withSignal } from './engine.ts';

export interface Upload {
  readonly engine: Engine;
  readonly container: string;
  readonly archive: ReadableStream<Uint8Array>;
  /** Throws if an entry may not go where its name says. */
  readonly demandEntry: (entry: TarEntry) => void;
  readonly parents: ParentDirectories;
  /** The beginning of every name, from the root of the container. */
  readonly below: TarName;
  /** How many of these directories, from the innermost outwards, have to be made. */
  readonly missing: number;
  /** The owner that all entries get. */
  readonly owner: Owner;
  readonly signal: AbortSignal;
}

/**
 * Has the engine unpack the entries, at once as far as their parent directories are known. Otherwise a part ends before the entries
 * whose parents are unknown, since the engine answers nothing about a container while it unpacks in it.
 */
export async function uploadArchive(upload: Upload): Promise<void> {
  const { archive, parents, below, missing, signal } = upload;
  const over = new AbortController();
  const batches = inBatches(tarEntries(archive, AbortSignal.any([signal, over.signal])));
  try {
    let next = await batches.next();
    let toMake = below.map((_, index) => below.slice(0, index + 1)).slice(below.length - missing);
    while (toMake.length > 0 || next.done !== true) {
      if (next.done !== true) await parents.lookUp(next.value);
      await sendPart(upload, async (tar) => {
        for (const parts of toMake) await addDirectory(upload, tar, parts);
        toMake = [];
        for (; next.done !== true && parents.knows(next.value); next = await batches.next()) await addBatch(upload, tar, next.value);
      });
    }
  } finally {
    over.abort(new Error('the archive is not wanted any more'));
    await batches.return().catch(() => {});
  }
}

async function addBatch(upload: Upload, tar: Pack, batch: readonly TarEntry[]): Promise<void> {
  const { below, owner, parents, demandEntry } = upload;
  for (const entry of batch) {
    demandEntry(entry);
    for (const parts of parents.enter(entry)) await addDirectory(upload, tar, [...below, ...parts]);
    // An archive may not change the root of a container.
    if (below.length + entry.parts.length === 0) continue;
    await addEntry(tar, { ...tarHeader(entry, below), ...owner }, entry.kind === 'file' ? entry.content : undefined);
  }
}

function addDirectory({ owner }: Upload, tar: Pack, parts: TarName): Promise<void> {
  return addEntry(tar, { ...tarHeader({ parts, kind: 'directory', mode: 0o755, modifiedAt: new Date() }, []), ...owner });
}

export interface UploadTarget {
  readonly directory: string;
  /** Whether a directory that is there stays, and the engine refuses to put something else in its place. */
  readonly keepDirectories: boolean;
}

/** Longer than any timer of the platform: the caller's signal is the limit. */
const unlimitedMs = 2 ** 31 - 1;

/**
 * Has the engine unpack a tar in a directory of the container. Rejects as the engine or the tar does. A tar that fails ends early, so that
 * the engine answers when it is done with what it got.
 */
export async function sendTar(
  { docker, call }: Engine, container: string, target: UploadTarget, tar: AsyncIterable<Uint8Array>, signal: AbortSignal,
): Promise<void> {
  const failures: unknown[] = [];
  const body = Readable.from(untilFailure(tar, failures), { objectMode: false });
  const options = { path: target.directory, ...(target.keepDirectories && { noOverwriteDirNonDir: '1' as const }) };
  try {
    const sending = (abortSignal: AbortSignal): Promise<NodeJS.ReadWriteStream> =>
      docker.getContainer(container).putArchive(body, withSignal(options, abortSignal));
    const answer = await call(sending, { signal, limitMs: unlimitedMs });
    if ('resume' in answer) answer.resume();
  } catch (error) {
    failures.push(error);
  } finally {
    body.destroy();
  }
  // If the tar itself failed, that is why the engine did not get the whole of it.
  if (failures.length > 0) throw failures[0];
}

async function* untilFailure(tar: AsyncIterable<Uint8Array>, failures: unknown[]): AsyncGenerator<Uint8Array, void> {
  try {
    yield* tar;
  } catch (error) {
    failures.push(error);
  }
}

async function sendPart({ engine, container, signal }: Upload, fill: (tar: Pack) => Promise<void>): Promise<void> {
  const tar = pack();
  const failures: unknown[] = [];
  // The reader of a tar learns only that it is not made to its end.
  const content = tarOf(tar, () => fill(tar).catch((error: unknown) => {
    failures.push(error);
    throw error;
  }));
  try {
    await sendTar(engine, container, { directory: '/', keepDirectories: true }, content, signal);
  } catch (error) {
    throw portFailure(failures[0] ?? error);
  }
}

/** Turns the engine's message about an archive that it does not unpack into the port's failure. */
export function portFailure(error: unknown): unknown {
  const status = statusOf(error);
  if (isFailure(error) || status === null || status === 404) return error;
  const message = messageOf(error);
  if (/cannot overwrite/i.test(message)) {
    return refusedFiles('archive', 'one of its directories is there already as something else, or the other way round; remove that first');
  }
  if (/no space left|quota exceeded/i.test(message)) return unavailable({ code: 'disk_full' }, error);
  if (/name too long|no such file|not a directory|invalid/i.test(message)) {
    return refusedFiles('archive', 'one of its names is too long, leads through a file, or links to a file that is not there');
  }
  return error;
}

const maxBatchBytes = 1 << 20;
/** What an entry costs besides its content. */
const entryBytes = 512;

/**
 * Reads entries ahead, so that their parents can be looked up together: as many as fit a MiB, with their contents in memory. An entry
 * that does not fit is the last of its batch, and its content has to be read to its end before the next batch is asked for.
 */
async function* inBatches(entries: AsyncIterable<TarEntry>): AsyncGenerator<readonly TarEntry[], void, void> {
  let batch: TarEntry[] = [];
  let bytes = 0;
  for await (const entry of entries) {
    bytes += entryBytes + (entry.kind === 'file' ? entry.size : 0);
    if (bytes <= maxBatchBytes) {
      batch.push(entry.kind === 'file' ? { ...entry, content: await inMemory(entry.content) } : entry);
      continue;
    }
    yield [...batch, entry];
    batch = [];
    bytes = 0;
  }
  if (batch.length > 0) yield batch;
}

async function inMemory(content: AsyncIterable<Uint8Array>): Promise<AsyncIterable<Uint8Array>> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of content) chunks.push(chunk);
  return Readable.from(chunks);
}

/**
 * What is known of the directories that an archive's entries lead through. The engine would follow a link there, but it never takes one
 * for a directory that the archive itself has an entry of.
 */
export class ParentDirectories {
  readonly #directory: string;
  /** Is the directory made for this archive, so that nothing is in it? */
  readonly #isNew: boolean;
  readonly #files: ContainerFiles;
  readonly #known = new Map<string, 'directory' | 'to be made' | 'made'>();

  constructor(directory: string, isNew: boolean, files: ContainerFiles) {
    this.#directory = directory;
    this.#isNew = isNew;
    this.#files = files;
  }

  /** Is each parent of the entries known, or will it be by the time that the engine gets there? */
  knows(entries: readonly TarEntry[]): boolean {
    return this.#unknown(entries).next().done === true;
  }

  /**
   * Looks up the unknown parents. Rejects with `invalid_request` if one is a link or a file. The engine must not be unpacking: it would
   * not answer.
   */
  async lookUp(entries: readonly TarEntry[]): Promise<void> {
    for (const { parent, parts } of this.#unknown(entries)) this.#known.set(parent.join('/'), await this.#kindOf(parent, parts));
  }

  /** Returns the directories that have to be made before the entry, which is unpacked then. */
  enter(entry: TarEntry): readonly TarName[] {
    const made: TarName[] = [];
    for (const parent of parentsOf(entry)) {
      const name = parent.join('/');
      const kind = this.#known.get(name) ?? 'to be made';
      if (kind === 'to be made') made.push(parent);
      this.#known.set(name, kind === 'directory' ? kind : 'made');
    }
    if (entry.kind === 'directory') this.#known.set(entry.parts.join('/'), this.#isBelowNew(entry.parts) ? 'made' : 'directory');
    return made;
  }

  #isBelowNew(parts: TarName): boolean {
    if (parts.length <= 1) return this.#isNew;
    const above = parts.slice(0, -1);
    const kind = this.#known.get(above.join('/'));
    return kind === undefined ? this.#isBelowNew(above) : kind !== 'directory';
  }

  async #kindOf(parent: TarName, parts: TarName): Promise<'directory' | 'to be made'> {
    const found = await this.#files.stat(posix.join(this.#directory, ...parent));
    if (found === null) return 'to be made';
    if (found.type === 'directory') return 'directory';
    if (found.type === 'symlink') throw throughLink(parts, parent.length);
    throw refusedFiles('archive', `${quoted(parent.join('/'))} is there, and is not a directory`);
  }

  /** Parents that we have not looked up and that no earlier entry creates. What is found out of one decides about those that follow. */
  *#unknown(entries: readonly TarEntry[]): Generator<{ readonly parent: TarName; readonly parts: TarName }> {
    const announced = new Set<string>();
    for (const entry of entries) {
      for (const parent of parentsOf(entry)) {
        const name = parent.join('/');
        if (!this.#known.has(name) && !announced.has(name) && !this.#isBelowNew(parent)) yield { parent, parts: entry.parts };
      }
      if (entry.kind === 'directory') announced.add(entry.parts.join('/'));
    }
  }
}

/** The parents of an entry, and of what it links to, from the outermost on. */
function parentsOf(entry: TarEntry): TarName[] {
  const ends = entry.kind === 'hardlink' ? [entry.parts, entry.target] : [entry.parts];
  return ends.flatMap((parts) => parts.slice(0, -1).map((_, index) => parts.slice(0, index + 1)));
}
