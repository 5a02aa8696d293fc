import { Readable } from 'node:stream';
import { pack, type Pack } from 'tar-stream';
import { isFailure } from '../../../domain/failure.ts';
import { refusedFiles } from '../sandbox-path.ts';
import { addEntry, type TarEntry, tarHeader, type TarName, tarOf } from '../tar.ts';
import type { Owner } from './container-files.ts';
import { type Engine, messageOf, statusOf, unavailable, withSignal } from './engine.ts';
import type { ParentDirectories } from './parent-directories.ts';

export interface Upload {
  readonly engine: Engine;
  readonly container: string;
  /** The entries to unpack. They break off when the signal fires. */
  readonly entries: (signal: AbortSignal) => AsyncGenerator<TarEntry, void, void>;
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
  const { entries, parents, below, missing, signal } = upload;
  const over = new AbortController();
  const batches = inBatches(entries(AbortSignal.any([signal, over.signal])));
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

/** Longer than any timer of the platform: the caller's signal is the limit. */
const unlimitedMs = 2 ** 31 - 1;

async function sendPart({ engine, container, signal }: Upload, fill: (tar: Pack) => Promise<void>): Promise<void> {
  const { docker, call } = engine;
  const failures: unknown[] = [];
  const tar = pack();
  const content = tarOf(tar, () =>
    fill(tar).catch((error: unknown) => {
      failures.push(error);
      throw error;
    }),
  );
  const body = Readable.from(content, { objectMode: false });
  const options = { path: '/', noOverwriteDirNonDir: '1' };
  try {
    const sending = (abortSignal: AbortSignal): Promise<NodeJS.ReadWriteStream> =>
      docker.getContainer(container).putArchive(body, withSignal(options, abortSignal));
    const answer = await call(sending, { signal, limitMs: unlimitedMs });
    if ('resume' in answer) answer.resume();
  } catch (error) {
    // If the archive itself failed, that is why the engine did not get the whole of it.
    throw portFailure(failures[0] ?? error);
  } finally {
    body.destroy();
  }
}

/** Turns the engine's message about an archive that it does not unpack into the port's failure. */
function portFailure(error: unknown): unknown {
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
