import { posix } from 'node:path';
import { quoted, refusedFiles } from '../sandbox-path.ts';
import { type TarEntry, type TarName, throughLink } from '../tar.ts';
import type { ContainerFiles } from './container-files.ts';

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
    if (parts.length === 1) return this.#isNew;
    const above = parts.slice(0, -1);
    const kind = this.#known.get(above.join('/'));
    return kind === undefined ? this.#isBelowNew(above) : kind !== 'directory';
  }

  async #kindOf(parent: TarName, parts: TarName): Promise<'directory' | 'to be made'> {
    const found = await this.#files.stat(posix.join(this.#directory, ...parent));
    if (found === null) return 'to be made';
    if (found.kind === 'directory') return 'directory';
    if (found.kind === 'link') throw throughLink(parts, parent.length);
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
