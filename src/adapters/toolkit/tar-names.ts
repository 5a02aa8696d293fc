import { quoted, refusedFiles } from './sandbox-path.ts';
import type { TarEntry } from './tar-entries.ts';

/** A name in a tar, part by part, from the directory where it is unpacked. */
export type TarName = readonly string[];

/** Throws `invalid_request` where the name leads out of the directory, or can't be kept as it is. */
export function checkedName(name: string, what: 'name' | 'target'): TarName {
  const refuse = (why: string): never => {
    throw refusedFiles('archive', `the ${what} ${quoted(name)} ${why}`);
  };
  if (name.startsWith('/')) refuse('is absolute; it must be relative to the directory');
  if (name.includes('\0')) refuse('holds a NUL character');
  if (name.includes('\uFFFD')) refuse('is not UTF-8');
  const parts = name.split('/').filter((part) => part !== '' && part !== '.');
  if (parts.includes('..')) refuse('leads out of the directory');
  return parts;
}

/** Makes a check, to be asked for each entry in order, that throws `invalid_request` for one whose way is through a link of the archive itself. */
export function createLinkCheck(): (entry: TarEntry) => void {
  const links = new Set<string>();
  const demandNoLink = (parts: TarName): void => {
    if (links.size === 0) return;
    for (let depth = 1; depth < parts.length; depth += 1) {
      if (links.has(parts.slice(0, depth).join('/'))) throw throughLink(parts, depth);
    }
  };
  return (entry) => {
    demandNoLink(entry.parts);
    if (entry.kind === 'hardlink') demandNoLink(entry.target);
    const name = entry.parts.join('/');
    if (entry.kind === 'symlink') links.add(name);
    // A second name for a link is a link.
    else if (entry.kind === 'hardlink' && links.has(entry.target.join('/'))) links.add(name);
    else links.delete(name);
  };
}

/** The refusal of an entry below what is a link, which its first `depth` parts name. */
export function throughLink(parts: TarName, depth: number): Error {
  return refusedFiles('archive', `${quoted(parts.join('/'))} leads through the link ${quoted(parts.slice(0, depth).join('/'))}`);
}
