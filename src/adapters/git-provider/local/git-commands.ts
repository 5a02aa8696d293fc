/**
 * The two git commands that a listing needs, and parsers of their output. Paths in git are bytes. They are kept as byte strings (one
 * character a byte) while they are compared, so that two paths that are not UTF-8 stay different.
 */

/** The arguments of git that list what a commit has below a directory. */
export function lsTreeArguments(oid: string, directory: string): string[] {
  return ['ls-tree', '-r', '-z', '--full-tree', oid, ...pathspec(directory)];
}

/** Limits a command to a directory; the empty one is the whole tree. */
function pathspec(directory: string): string[] {
  return directory === '' ? [] : ['--', directory];
}

const regularFile = /^100\d{3} blob [0-9a-f]+\t/u;

/** Parses the output of `ls-tree` as it arrives. `onFile` gets the path of each regular file. */
export function parseTree(onFile: (path: string) => void): (chunk: Buffer) => void {
  return splitAtNul((entry) => {
    if (regularFile.test(entry)) onFile(entry.slice(entry.indexOf('\t') + 1));
  });
}

/** A commit adds a path if it has the path and none of its parents has. */
export interface Addition {
  readonly path: string;
  /** The committer date, in seconds since the epoch. */
  readonly seconds: number;
  /** Whether it is only in the history of `since`, and so no longer in that of the commit. */
  readonly lost: boolean;
}

/**
 * The arguments of git that list every addition below a directory in a commit's history. With `since`, only those that the histories
 * of the two commits do not share.
 *
 * The first commit that touches a path is one that adds it, so additions are enough to date paths, and they are few. Every parent is
 * followed, whatever a merge took from it.
 */
export function logArguments(oid: string, directory: string, since: string | null): string[] {
  const additions = ['--full-history', '-c', '--diff-filter=A', '--no-renames', '--ignore-submodules=none'];
  const format = ['--name-only', '-z', `--format=${headerMark}%m%ct`, '--encoding=none'];
  const commits = since === null ? [oid] : ['--left-right', `${since}...${oid}`];
  return ['log', ...additions, ...format, ...commits, ...pathspec(directory)];
}

// No path in git begins with it.
const headerMark = '/';
const lostMark = '<';
// The last second of the year 9999: a later one has no RFC 3339 form.
const lastSecond = 253_402_300_799;

/**
 * Parses the output of `log` as it arrives. Each commit has a header, then either a line feed or an empty entry (after a merge), then
 * the paths.
 */
export function parseAdditions(onAddition: (addition: Addition) => void): (chunk: Buffer) => void {
  let commit = { seconds: 0, lost: false };
  let afterHeader = false;
  return splitAtNul((entry) => {
    if (entry.startsWith(headerMark)) {
      commit = { seconds: secondsOf(entry.slice(2)), lost: entry[1] === lostMark };
      afterHeader = true;
      return;
    }
    const path = afterHeader && entry.startsWith('\n') ? entry.slice(1) : entry;
    if (path !== '') onAddition({ path, ...commit });
    afterHeader = false;
  });
}

/** A date that can't be parsed is the epoch, as it is for git. */
function secondsOf(text: string): number {
  const seconds = Number.parseInt(text, 10);
  return Number.isNaN(seconds) ? 0 : Math.min(Math.max(seconds, 0), lastSecond);
}

/** Splits a stream of NUL-terminated entries into byte strings. */
function splitAtNul(onEntry: (entry: string) => void): (chunk: Buffer) => void {
  let rest = '';
  return (chunk) => {
    const entries = (rest + chunk.toString('latin1')).split('\0');
    rest = entries.pop() ?? '';
    for (const entry of entries) onEntry(entry);
  };
}
