import { posix } from 'node:path';
import { quoted, refusedFiles } from '../../sandbox-path.ts';
import { type TarEntry, type TarName, throughLink } from '../../tar-entries.ts';
import type { Stat } from './stat.ts';

/**
 * What is known of the directories that an archive's entries lead through. The engine would follow a link there; but it never takes
 * one for a directory that the archive itself has an entry of.
 */
export interface Tree {
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
