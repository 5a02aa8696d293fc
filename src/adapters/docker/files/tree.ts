import { posix } from 'node:path';
import { quoted, refusedFiles } from '../../toolkit/sandbox-path.ts';
import type { TarEntry } from '../../toolkit/tar-entries.ts';
import { throughLink, type TarName } from '../../toolkit/tar-names.ts';
import type { Stat } from './stat.ts';

/**
 * What is known of the directories that an archive's entries lead through. The engine would follow a link there; but it never takes
 * one for a directory that the archive itself has an entry of.
 */
export interface Tree {
  /** Is it known of every directory on the entry's way what it is? */
  knows(entry: TarEntry): boolean;
  /** Finds out. Rejects with `invalid_request` where something on the way is a link or a file. The engine must not be unpacking: it would not answer. */
  look(entry: TarEntry): Promise<void>;
  /** The directories that have to be made before the entry, which is unpacked then. */
  enter(entry: TarEntry): readonly TarName[];
}

export function createTree(directory: string, isNew: boolean, stat: Stat): Tree {
  const known = new Map<string, 'directory' | 'to be made' | 'made'>();
  const isBelowNew = (way: TarName): boolean => {
    const above = known.get(way.slice(0, -1).join('/'));
    return way.length === 1 ? isNew : above === 'to be made' || above === 'made';
  };
  const kindOf = async (way: TarName, parts: TarName): Promise<'directory' | 'to be made'> => {
    const found = isBelowNew(way) ? null : await stat(posix.join(directory, ...way));
    if (found === null) return 'to be made';
    if (found.kind === 'directory') return 'directory';
    if (found.kind === 'link') throw throughLink(parts, way.length);
    throw refusedFiles('archive', `${quoted(way.join('/'))} is there, and is not a directory`);
  };
  return {
    knows: (entry) => waysOf(entry).every((way) => known.has(way.join('/')) || isBelowNew(way)),
    async look(entry) {
      for (const way of waysOf(entry)) if (!known.has(way.join('/'))) known.set(way.join('/'), await kindOf(way, entry.parts));
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
