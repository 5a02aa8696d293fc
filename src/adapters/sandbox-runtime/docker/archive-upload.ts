import { posix } from 'node:path';
import { Readable } from 'node:stream';
import { pack, type Pack } from 'tar-stream';
import { Failure, isFailure } from '../../../domain/failure.ts';
import { quoted, refusedFiles } from '../sandbox-path.ts';
import { addEntry, type TarEntry, tarHeader, type TarName, tarOf, throughLink } from '../tar.ts';
import type { Owner, Stat } from './container-files.ts';
import { type Connection, messageOf, statusOf, withSignal } from './engine.ts';

interface Sending {
  readonly connection: Connection;
  readonly container: string;
  /** What is sent; it breaks off when the signal fires. */
  readonly entries: (signal: AbortSignal) => AsyncGenerator<TarEntry, void, void>;
  /** Throws where an entry may not go where its name says. */
  readonly demandEntry: (entry: TarEntry) => void;
  readonly tree: Tree;
  /** What every name begins with, from the root of the container. */
  readonly below: TarName;
  /** How many of these directories, from the innermost outwards, have to be made. */
  readonly missing: number;
  /** Whom everything is to belong to. */
  readonly owner: Owner;
  readonly signal: AbortSignal;
}

/**
 * Has the engine unpack the entries, in one go where it is known what they lead through. Otherwise a part ends before the entries of
 * which that is not known, since the engine tells nothing about a container while it unpacks in it.
 */
export async function sendInParts(sending: Sending): Promise<void> {
  const { entries, demandEntry, tree, below, missing, owner, signal } = sending;
  const over = new AbortController();
  const batches = inBatches(entries(AbortSignal.any([signal, over.signal])));
  const add = (tar: Pack, entry: TarEntry, base: TarName): Promise<void> =>
    addEntry(tar, { ...tarHeader(entry, base), ...owner }, entry.kind === 'file' ? entry.content : undefined);
  const make = (tar: Pack, parts: TarName): Promise<void> => add(tar, { parts, kind: 'directory', mode: 0o755, modifiedAt: new Date() }, []);
  const addAll = async (tar: Pack, batch: readonly TarEntry[]): Promise<void> => {
    for (const entry of batch) {
      demandEntry(entry);
      for (const parts of tree.enter(entry)) await make(tar, [...below, ...parts]);
      // The root of a container is not an archive's to change.
      if (below.length + entry.parts.length > 0) await add(tar, entry, below);
    }
  };
  try {
    let next = await batches.next();
    let toMake = below.map((_, index) => below.slice(0, index + 1)).slice(below.length - missing);
    while (toMake.length > 0 || next.done !== true) {
      if (next.done !== true) await tree.look(next.value);
      await sendPart(sending, async (tar) => {
        for (const parts of toMake) await make(tar, parts);
        toMake = [];
        for (; next.done !== true && tree.knows(next.value); next = await batches.next()) await addAll(tar, next.value);
      });
    }
  } finally {
    over.abort(new Error('the archive is not wanted any more'));
    await batches.return().catch(() => {});
  }
}

/** Longer than any timer of the platform; the caller's signal is the limit. */
const unlimitedMs = 2 ** 31 - 1;

async function sendPart({ connection: { docker, call }, container, signal }: Sending, fill: (tar: Pack) => Promise<void>): Promise<void> {
  const failures: unknown[] = [];
  const tar = pack();
  const content = tarOf(tar, () =>
    fill(tar).catch((error: unknown) => {
      failures.push(error);
      throw error;
    }),
  );
  const body = Readable.from(content, { objectMode: false });
  try {
    const options = { path: '/', noOverwriteDirNonDir: '1' };
    const answer = await call((abortSignal) => docker.getContainer(container).putArchive(body, withSignal(options, abortSignal)), { signal, limitMs: unlimitedMs });
    if ('resume' in answer) answer.resume();
  } catch (error) {
    // What the archive itself lacks is why the engine does not get the whole of it.
    throw inWords(failures[0] ?? error);
  } finally {
    body.destroy();
  }
}

const maxBytes = 1 << 20;
/** What an entry costs besides its content. */
const entryBytes = 512;

/**
 * Reads entries ahead, for what they lead through to be looked up in one go: as many as fit a MiB, with their contents in memory. One
 * that does not fit is the last of its batch, and its content is to be read to its end before the next batch is asked for.
 */
async function* inBatches(entries: AsyncIterable<TarEntry>): AsyncGenerator<readonly TarEntry[], void, void> {
  let batch: TarEntry[] = [];
  let bytes = 0;
  for await (const entry of entries) {
    bytes += entryBytes + (entry.kind === 'file' ? entry.size : 0);
    if (bytes <= maxBytes) {
      batch.push(entry.kind === 'file' ? { ...entry, content: await gathered(entry.content) } : entry);
      continue;
    }
    yield [...batch, entry];
    batch = [];
    bytes = 0;
  }
  if (batch.length > 0) yield batch;
}

async function gathered(content: AsyncIterable<Uint8Array>): Promise<AsyncIterable<Uint8Array>> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of content) chunks.push(chunk);
  return (async function* () {
    yield* chunks;
  })();
}

/**
 * What is known of the directories that an archive's entries lead through. The engine would follow a link there; but it never takes
 * one for a directory that the archive itself has an entry of.
 */
interface Tree {
  /** Is it known of every directory on the entries' way what it is, or will it be by the time that they have come so far? */
  knows(entries: readonly TarEntry[]): boolean;
  /** Finds out. Rejects with `invalid_request` where something on the way is a link or a file. The engine must not be unpacking: it would not answer. */
  look(entries: readonly TarEntry[]): Promise<void>;
  /** The directories that have to be made before the entry, which is unpacked then. */
  enter(entry: TarEntry): readonly TarName[];
}

export function createTree(directory: string, isNew: boolean, stat: Stat): Tree {
  const known = new Map<string, 'directory' | 'to be made' | 'made'>();
  const isBelowNew = (way: TarName): boolean => {
    if (way.length === 1) return isNew;
    const above = way.slice(0, -1);
    const kind = known.get(above.join('/'));
    return kind === undefined ? isBelowNew(above) : kind !== 'directory';
  };
  const kindOf = async (way: TarName, parts: TarName): Promise<'directory' | 'to be made'> => {
    const found = await stat(posix.join(directory, ...way));
    if (found === null) return 'to be made';
    if (found.kind === 'directory') return 'directory';
    if (found.kind === 'link') throw throughLink(parts, way.length);
    throw refusedFiles('archive', `${quoted(way.join('/'))} is there, and is not a directory`);
  };
  /** Those on the way that nothing is known of, and that no earlier entry is. What is found out of one decides about those that follow. */
  function* unknown(entries: readonly TarEntry[]): Generator<{ readonly way: TarName; readonly parts: TarName }> {
    const announced = new Set<string>();
    for (const entry of entries) {
      for (const way of waysOf(entry)) {
        const name = way.join('/');
        if (!known.has(name) && !announced.has(name) && !isBelowNew(way)) yield { way, parts: entry.parts };
      }
      if (entry.kind === 'directory') announced.add(entry.parts.join('/'));
    }
  }

  return {
    knows: (entries) => unknown(entries).next().done === true,
    async look(entries) {
      for (const { way, parts } of unknown(entries)) known.set(way.join('/'), await kindOf(way, parts));
    },
    enter(entry) {
      const made: TarName[] = [];
      for (const way of waysOf(entry)) {
        const name = way.join('/');
        const kind = known.get(name) ?? 'to be made';
        if (kind === 'to be made') made.push(way);
        known.set(name, kind === 'directory' ? kind : 'made');
      }
      if (entry.kind === 'directory') known.set(entry.parts.join('/'), isBelowNew(entry.parts) ? 'made' : 'directory');
      return made;
    },
  };
}

/** The directories on the way to where an entry goes, and to what it links, from the outermost on. */
function waysOf(entry: TarEntry): TarName[] {
  const ends = entry.kind === 'hardlink' ? [entry.parts, entry.target] : [entry.parts];
  return ends.flatMap((parts) => parts.slice(0, -1).map((_, index) => parts.slice(0, index + 1)));
}

/** What the engine says of an archive that it does not unpack, in the words of the port. */
function inWords(error: unknown): unknown {
  const status = statusOf(error);
  if (isFailure(error) || status === null || status === 404) return error;
  const said = messageOf(error);
  if (/cannot overwrite/i.test(said)) {
    return refusedFiles('archive', 'one of its directories is there already as something else, or the other way round; remove that first');
  }
  if (/no space left|quota exceeded/i.test(said)) {
    return new Failure('runtime_unavailable', { runtime: 'docker', reason: 'the disk of its engine is full', retryAfterSeconds: 5 }, { cause: error });
  }
  if (/name too long|no such file|not a directory|invalid/i.test(said)) {
    return refusedFiles('archive', 'one of its names is too long, leads through a file, or links to a file that is not there');
  }
  return error;
}
