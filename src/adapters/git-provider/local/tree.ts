import { splitAtNul } from './byte-string.ts';

/** The arguments of git that list what a commit has below a directory. */
export function treeArguments(oid: string, directory: string): string[] {
  return ['ls-tree', '-r', '-z', '--full-tree', oid, ...pathspec(directory)];
}

/** Limits a command to a directory; the empty one is the whole tree. */
export function pathspec(directory: string): string[] {
  return directory === '' ? [] : ['--', directory];
}

const regularFile = /^100\d{3} blob [0-9a-f]+\t/u;

/** Reads that list as it comes, and tells the path of each regular file, as a byte string. */
export function readTree(onFile: (path: string) => void): (chunk: Buffer) => void {
  return splitAtNul((entry) => {
    if (regularFile.test(entry)) onFile(entry.slice(entry.indexOf('\t') + 1));
  });
}
