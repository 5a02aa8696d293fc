import { isUtf8 } from 'node:buffer';
import type { GraphqlEntry, RestEntry } from './schema.ts';
import type { TreeFile } from './source.ts';

/** What the entries of a directory come to. */
export interface Collected {
  readonly files: TreeFile[];
  /** Is there a directory whose entries were not told? */
  readonly incomplete: boolean;
}

const typeMask = 0o170_000;
const regularType = 0o100_000;

/** Collects the regular files at any depth. Names that are not UTF-8 are left out: nobody could ask for their history. */
export function collectEntries(entries: readonly GraphqlEntry[], prefix: string): Collected {
  const files: TreeFile[] = [];
  let incomplete = false;
  for (const { nameRaw, type, mode, oid, object } of entries) {
    const bytes = Buffer.from(nameRaw, 'base64');
    if (!isUtf8(bytes)) continue;
    const path = prefix + bytes.toString('utf8');
    if (type === 'blob' && (mode & typeMask) === regularType) files.push({ path, oid });
    if (type !== 'tree') continue;
    const below = object?.entries;
    if (below === undefined || below === null) {
      incomplete = true;
      continue;
    }
    const collected = collectEntries(below, `${path}/`);
    files.push(...collected.files);
    incomplete ||= collected.incomplete;
  }
  return { files, incomplete };
}

export function isRegular({ type, mode }: RestEntry): boolean {
  return type === 'blob' && mode.startsWith('100');
}
