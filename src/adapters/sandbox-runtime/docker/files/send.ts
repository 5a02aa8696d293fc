import { Readable } from 'node:stream';
import { pack, type Pack } from 'tar-stream';
import { type TarEntry, tarHeader, type TarName } from '../../tar-entries.ts';
import { addEntry, tarOf } from '../../tar-writing.ts';
import type { Connection } from '../connect.ts';
import type { Owner } from '../sandbox/owner.ts';
import { inBatches } from './batches.ts';
import { inWords } from './in-words.ts';
import type { Tree } from './tree.ts';
import { withSignal } from './with-signal.ts';

export interface Sending {
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
