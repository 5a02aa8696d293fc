import { isUtf8 } from 'node:buffer';
import { posix } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import type Docker from 'dockerode';
import { tarEnd, tarEntry } from '../../shared/packed-tar.ts';
import { partsBelow, quotedName, refusedFiles } from '../sandbox-path.ts';
import { bytesOf, tarEntries, type TarEntry, tarHeader, type TarName, tarName, textOf, throughLink } from '../tar.ts';
import { ContainerFiles, type Owner, root, unpackFailure } from './container-files.ts';
import { requireReachable, isReadOnly } from './container-mounts.ts';
import { type Engine, findContainer } from './engine.ts';
import { withInitContainer } from './init-container.ts';

interface Target {
  readonly container: Docker.ContainerInspectInfo;
  /** The innermost directory of the path that exists. */
  readonly base: string;
  /** The directories below it that do not exist, from the outermost on. */
  readonly missing: TarName;
  readonly parents: ParentDirectories;
  readonly owner: Owner;
  /** The files of the container in which the engine unpacks. */
  readonly files: ContainerFiles;
  /** The name of the base in that container. */
  readonly below: TarName;
}

/** Unpacks an archive in a directory of a sandbox's container, which need not run. */
export async function uploadArchive(
  engine: Engine, id: string, directory: string, archive: ReadableStream<Uint8Array>, signal: AbortSignal,
): Promise<void> {
  const container = await findContainer(engine, id, signal);
  const files = new ContainerFiles(engine, container.Id);
  const { base, missing } = await findBase(directory, files);
  requireReachable(container, base, 'directory');
  if (isReadOnly(container, base)) {
    const hint = `choose a directory below ${quotedName(container.Config.WorkingDir)}`;
    throw refusedFiles('directory', `${quotedName(directory)} is read-only in this sandbox; ${hint}`);
  }
  const owner = (await files.owner(container.Config.User)) ?? root;
  const parents = new ParentDirectories(base, missing, files);
  const target = { container, base, missing, parents, owner, files, below: partsOf(base) };
  if (container.HostConfig.ReadonlyRootfs !== true) return await unpack(target, archive, signal);
  // If the root is read-only, the engine unpacks nothing. But an init container has the same volumes and a writable root.
  await withInitContainer(engine, container, id, (init, placeOf) =>
    unpack({ ...target, files: init, below: partsOf(placeOf(base)) }, archive, signal));
}

function partsOf(path: string): TarName {
  return tarName(partsBelow('/', path) ?? []);
}

/** Finds the innermost existing directory, and the names below it. Throws `invalid_request` if the path contains something else. */
async function findBase(directory: string, files: ContainerFiles): Promise<{ readonly base: string; readonly missing: TarName }> {
  const missing: string[] = [];
  for (let at = directory; at !== '/'; at = posix.dirname(at)) {
    const found = await files.statTarget(at);
    if (found === null) missing.unshift(posix.basename(at));
    else if (found.type === 'directory') return { base: found.path, missing: tarName(missing) };
    else throw refusedFiles('directory', `${quotedName(at)} is there, and is not a directory`);
  }
  return { base: '/', missing: tarName(missing) };
}

/** Yields the archive's entries below the missing directories. The innermost of these comes first. */
async function* entriesOf(archive: ReadableStream<Uint8Array>, missing: TarName, signal: AbortSignal): AsyncGenerator<TarEntry, void> {
  if (missing.length > 0) yield newDirectory(missing);
  for await (const entry of tarEntries(archive, signal)) {
    const parts = [...missing, ...entry.parts];
    yield entry.kind === 'hardlink' ? { ...entry, parts, target: [...missing, ...entry.target] } : { ...entry, parts };
  }
}

function newDirectory(parts: TarName): TarEntry {
  return { parts, kind: 'directory', mode: 0o755, modifiedAt: new Date() };
}

/**
 * Sends the entries to the engine in as few parts as possible. A part ends before entries whose parent directories must be looked up first:
 * while the engine unpacks, it answers no other request about the container.
 */
async function unpack(target: Target, archive: ReadableStream<Uint8Array>, signal: AbortSignal): Promise<void> {
  const { parents, files, missing } = target;
  const over = new AbortController();
  const batches = inBatches(entriesOf(archive, missing, AbortSignal.any([signal, over.signal])));
  try {
    let next = await batches.next();
    while (next.done !== true) {
      await parents.lookUpParents(next.value);
      // The engine reads this generator, which leaves in `next` the first batch that is not packed.
      const part = async function* (): AsyncGenerator<Uint8Array, void> {
        for (; next.done !== true && parents.hasKnownParents(next.value); next = await batches.next()) yield* packBatch(target, next.value);
        yield tarEnd;
      };
      // Unpacks from the root, since the engine refuses a link that leads out of the target directory.
      await files.unpack({ path: '/', noOverwriteDirNonDir: '1' }, part(), signal);
    }
  } catch (error) {
    throw unpackFailure(error);
  } finally {
    over.abort(new Error('the archive is not wanted any more'));
    await batches.return().catch(() => {});
  }
}

async function* packBatch(
  { container, base, parents, owner, below }: Target, batch: readonly TarEntry[],
): AsyncGenerator<Uint8Array, void> {
  for (const entry of batch) {
    requireReachable(container, posix.join(base, textOf(entry.parts)), 'directory');
    for (const parts of parents.addEntry(entry)) yield* tarEntry({ ...tarHeader(newDirectory(parts), below), ...owner });
    // An archive may not change the root of a container.
    if (below.length + entry.parts.length === 0) continue;
    yield* tarEntry({ ...tarHeader(entry, below), ...owner }, entry.kind === 'file' ? entry.content : []);
  }
}

const maxBatchBytes = 1 << 20;
const entryBytes = 512;

/**
 * Reads entries into memory, so that their parents can be looked up together, up to the limit. An entry that exceeds the limit is the last
 * of its batch. Its content stays a stream, which must be read to its end before the next batch.
 */
async function* inBatches(entries: AsyncIterable<TarEntry>): AsyncGenerator<readonly TarEntry[], void, void> {
  let batch: TarEntry[] = [];
  let bytes = 0;
  for await (const entry of entries) {
    bytes += entryBytes + (entry.kind === 'file' ? entry.size : 0);
    if (bytes <= maxBatchBytes) {
      batch.push(entry.kind === 'file' ? { ...entry, content: Readable.from(await buffer(entry.content)) } : entry);
      continue;
    }
    yield [...batch, entry];
    batch = [];
    bytes = 0;
  }
  if (batch.length > 0) yield batch;
}

/** What is known of a name, and of those below it. */
interface KnownName {
  /**
   * - `unknown`: not looked up.
   * - `existing`: a directory of the sandbox.
   * - `missing`: a directory to create before the first entry below it.
   * - `created`: a directory of the archive, or one that was created for it.
   * - `link`: a link of the archive.
   */
  state: 'unknown' | 'existing' | 'missing' | 'created' | 'link';
  readonly below: Map<string, KnownName>;
}

/** A directory above an entry. */
interface Parent {
  readonly name: KnownName;
  readonly parts: TarName;
  readonly entry: TarEntry;
}

/**
 * The known directories above an archive's entries. The engine would follow a link there. But if the archive itself contains an entry for
 * the directory, the engine refuses a link in its place.
 */
class ParentDirectories {
  readonly #base: string;
  readonly #files: ContainerFiles;
  readonly #root: KnownName = { state: 'existing', below: new Map() };

  /** Names are relative to the base, which exists. The missing directory below it does not. */
  constructor(base: string, missing: TarName, files: ContainerFiles) {
    this.#base = base;
    this.#files = files;
    for (const name of this.#wayTo(missing)) name.state = 'missing';
  }

  /** Returns whether each parent of the entries is known, or an earlier entry creates it. */
  hasKnownParents(entries: readonly TarEntry[]): boolean {
    return this.#unknownParents(entries).next().done === true;
  }

  /** Looks up the unknown parents. Throws `invalid_request` if one is a link or a file. Must not be called while the engine unpacks. */
  async lookUpParents(entries: readonly TarEntry[]): Promise<void> {
    for (const parent of this.#unknownParents(entries)) parent.name.state = await this.#lookUp(parent);
  }

  /**
   * Returns the directories to create before the entry. After that, they and the entry count as unpacked. Throws `invalid_request` if the
   * entry leads through a link of the archive.
   */
  addEntry(entry: TarEntry): readonly TarName[] {
    const created = parentsOf(entry).flatMap((parents) => this.#createParents(parents, entry));
    // A second name for a link is a link.
    const isLink = entry.kind === 'symlink' || (entry.kind === 'hardlink' && this.#at(entry.target).state === 'link');
    if (isLink) this.#at(entry.parts).state = 'link';
    if (entry.kind === 'directory') this.#at(entry.parts).state = this.#isNew(entry.parts) ? 'created' : 'existing';
    return created;
  }

  #createParents(parents: TarName, entry: TarEntry): TarName[] {
    const way = this.#wayTo(parents);
    const link = way.findIndex(({ state }) => state === 'link');
    if (link >= 0) throw throughLink(entry.parts, parents.slice(0, link + 1));
    const created: TarName[] = [];
    for (const [index, name] of way.entries()) {
      if (name.state === 'existing' || name.state === 'created') continue;
      name.state = 'created';
      created.push(parents.slice(0, index + 1));
    }
    return created;
  }

  /** Returns whether the directory contains only entries of the archive: the innermost known name on the way to it decides. */
  #isNew(parts: TarName): boolean {
    return [this.#root, ...this.#wayTo(parts)].findLast(({ state }) => state !== 'unknown')?.state !== 'existing';
  }

  /** Creating an existing directory would change its mode, owner and time. */
  async #lookUp({ parts, entry }: Parent): Promise<'existing' | 'missing'> {
    // The engine's stat takes only UTF-8.
    if (!isUtf8(bytesOf(parts.join('/')))) {
      const hint = 'so it is not known whether it is there; put an entry for this directory into the archive, before those in it';
      throw refusedFiles('archive', `the name ${quotedName(textOf(parts))} is not UTF-8, ${hint}`);
    }
    const found = await this.#files.stat(posix.join(this.#base, textOf(parts)));
    if (found === null) return 'missing';
    if (found.type === 'directory') return 'existing';
    if (found.type === 'symlink') throw throughLink(entry.parts, parts);
    throw refusedFiles('archive', `${quotedName(textOf(parts))} is there, and is not a directory`);
  }

  /** Yields the parents that are not looked up and that no earlier entry creates. The state that one gets decides about the next ones. */
  *#unknownParents(entries: readonly TarEntry[]): Generator<Parent> {
    const directories = new Set<KnownName>();
    for (const entry of entries) {
      for (const parents of parentsOf(entry)) {
        // Nothing of the sandbox is below a directory that did not exist.
        let isBelowNew = false;
        for (const [index, name] of this.#wayTo(parents).entries()) {
          if (name.state === 'unknown' && !directories.has(name) && !isBelowNew) {
            yield { name, parts: parents.slice(0, index + 1), entry };
          }
          if (name.state !== 'unknown') isBelowNew = name.state !== 'existing';
        }
      }
      if (entry.kind === 'directory') directories.add(this.#at(entry.parts));
    }
  }

  #at(parts: TarName): KnownName {
    return this.#wayTo(parts).at(-1) ?? this.#root;
  }

  /** Returns what is known of the directories on the way to a name, and of the name. */
  #wayTo(parts: TarName): KnownName[] {
    let last = this.#root;
    return parts.map((part) => {
      const next = last.below.get(part) ?? { state: 'unknown', below: new Map() };
      last.below.set(part, next);
      return (last = next);
    });
  }
}

/** Returns the directories of an entry and of its hard link's target. */
function parentsOf(entry: TarEntry): TarName[] {
  const ends = entry.kind === 'hardlink' ? [entry.parts, entry.target] : [entry.parts];
  return ends.map((parts) => parts.slice(0, -1));
}
