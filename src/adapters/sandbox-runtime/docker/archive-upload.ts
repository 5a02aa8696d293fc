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
  /** Throws if the entry's path is not allowed. */
  readonly demandEntry: (entry: TarEntry) => void;
  readonly parents: ParentDirectories;
  /** The prefix of every name, from the root of the container. */
  readonly below: TarName;
  /** How many of these directories must be created, counted from the innermost. */
  readonly missing: number;
  /** The owner that all entries get. */
  readonly owner: Owner;
  readonly signal: AbortSignal;
}

/**
 * Lets the engine unpack the entries. If all parent directories are known, this is one request. Otherwise a request ends before the first
 * entry with an unknown parent, because the engine answers no question about a container while it unpacks there.
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

/** Adds the entries all at once, so that those in memory are sent together. */
async function addBatch(upload: Upload, tar: Pack, batch: readonly BatchEntry[]): Promise<void> {
  const { below, owner, parents, demandEntry } = upload;
  for (const entry of batch) demandEntry(entry);
  await Promise.all(batch.flatMap((entry) => {
    const made = parents.enter(entry).map((parts) => addDirectory(upload, tar, [...below, ...parts]));
    // An archive may not change the root of a container.
    if (below.length + entry.parts.length === 0) return made;
    const content = entry.kind === 'file' ? (entry.bytes ?? entry.content) : undefined;
    return [...made, addEntry(tar, { ...tarHeader(entry, below), ...owner }, content)];
  }));
}

function addDirectory({ owner }: Upload, tar: Pack, parts: TarName): Promise<void> {
  return addEntry(tar, { ...tarHeader({ parts, kind: 'directory', mode: 0o755, modifiedAt: new Date() }, []), ...owner });
}

export interface UploadTarget {
  readonly directory: string;
  /** If true, an existing directory stays, and the engine refuses to replace it with something else. */
  readonly keepDirectories: boolean;
}

/** The longest timeout that a timer accepts: only the caller's signal is the limit. */
const unlimitedMs = 2 ** 31 - 1;

/**
 * Lets the engine unpack a tar in a directory of the container. Rejects with the error of the engine or of the tar. If the tar fails, the
 * request ends early, and the engine answers after it unpacked the entries that it received.
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
  // If the tar failed, its error is the cause of the engine's error.
  if (failures.length > 0) throw failures[0];
}

async function* untilFailure(tar: AsyncIterable<Uint8Array>, failures: unknown[]): AsyncGenerator<Uint8Array, void> {
  try {
    yield* tar;
  } catch (error) {
    failures.push(error);
  }
}

/** How much of a tar is created ahead. Each piece that is sent costs as much as some KiB. */
const partBytes = 256 << 10;

async function sendPart({ engine, container, signal }: Upload, fill: (tar: Pack) => Promise<void>): Promise<void> {
  const tar = pack({ highWaterMark: partBytes });
  const failures: unknown[] = [];
  // The reader of a tar learns only that the tar is incomplete, not why.
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

/** Turns the engine's error about an archive into the port's failure. */
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
/** The cost of an entry without its content. */
const entryBytes = 512;

/** An entry. If its content is short enough, it is in memory. */
type BatchEntry = TarEntry & { readonly bytes?: Buffer };

/**
 * Reads entries ahead, up to 1 MiB with their contents in memory, so that their parents can be looked up together. An entry that does not
 * fit is the last of its batch. Its content must be read to the end before the next batch is requested.
 */
async function* inBatches(entries: AsyncIterable<TarEntry>): AsyncGenerator<readonly BatchEntry[], void, void> {
  let batch: BatchEntry[] = [];
  let bytes = 0;
  for await (const entry of entries) {
    bytes += entryBytes + (entry.kind === 'file' ? entry.size : 0);
    if (bytes <= maxBatchBytes) {
      batch.push(entry.kind === 'file' ? { ...entry, bytes: await gathered(entry.content) } : entry);
      continue;
    }
    yield [...batch, entry];
    batch = [];
    bytes = 0;
  }
  if (batch.length > 0) yield batch;
}

async function gathered(content: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of content) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/**
 * The known parent directories of an archive's entries. The engine would follow a link in their place. But it never takes a link for a
 * directory that has its own entry in the archive.
 */
export class ParentDirectories {
  readonly #directory: string;
  /** True if the directory was created for this archive, and so is empty. */
  readonly #isNew: boolean;
  readonly #files: ContainerFiles;
  readonly #known = new Map<string, 'directory' | 'to be made' | 'made'>();

  constructor(directory: string, isNew: boolean, files: ContainerFiles) {
    this.#directory = directory;
    this.#isNew = isNew;
    this.#files = files;
  }

  /** Returns whether each parent of the entries is known, or will be known when the engine unpacks the entry. */
  knows(entries: readonly TarEntry[]): boolean {
    return this.#unknown(entries).next().done === true;
  }

  /**
   * Looks up the unknown parents. Rejects with `invalid_request` if one is a link or a file. Must not be called while the engine unpacks:
   * it would not answer.
   */
  async lookUp(entries: readonly TarEntry[]): Promise<void> {
    for (const { parent, parts } of this.#unknown(entries)) this.#known.set(parent.join('/'), await this.#kindOf(parent, parts));
  }

  /** Returns the directories to create before the entry. Assumes that the entry is unpacked next. */
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

  /** Parents that we have not looked up and that no earlier entry creates. A lookup between two steps changes which ones follow. */
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

/** The parents of an entry, and of the target of a hard link, from the outermost on. */
function parentsOf(entry: TarEntry): TarName[] {
  const ends = entry.kind === 'hardlink' ? [entry.parts, entry.target] : [entry.parts];
  return ends.flatMap((parts) => parts.slice(0, -1).map((_, index) => parts.slice(0, index + 1)));
}
