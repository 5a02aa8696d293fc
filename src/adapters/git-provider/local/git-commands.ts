/** The arguments of git that list what a commit has below a directory. */
export function treeArguments(oid: string, directory: string): string[] {
  return ['ls-tree', '-r', '-z', '--full-tree', oid, ...pathspec(directory)];
}

/** Limits a command to a directory; the empty one is the whole tree. */
function pathspec(directory: string): string[] {
  return directory === '' ? [] : ['--', directory];
}

const regularFile = /^100\d{3} blob [0-9a-f]+\t/u;

/** Reads that list as it comes, and tells the path of each regular file, as a byte string. */
export function readTree(onFile: (path: string) => void): (chunk: Buffer) => void {
  return splitAtNul((entry) => {
    if (regularFile.test(entry)) onFile(entry.slice(entry.indexOf('\t') + 1));
  });
}

/** A commit of the history adds a path: it has it, and none of its parents has. */
export interface Addition {
  /** A byte string. */
  readonly path: string;
  /** The committer date, in seconds since the epoch. */
  readonly seconds: number;
  /** Is it only in the history of `since`, and so no longer in that of the commit? */
  readonly lost: boolean;
}

/**
 * The arguments of git that tell every addition below a directory in a commit's history. With `since`, only those that
 * the histories of the two commits don't share.
 *
 * The first commit of a history that touches a path is one that adds it, so additions are all that is needed to date
 * paths, and they are few. Every parent is followed, whatever a merge took from it. A merge adds what none of its
 * parents has.
 */
export function additionArguments(oid: string, directory: string, since: string | null): string[] {
  return [
    'log',
    '--full-history',
    '-c',
    '--diff-filter=A',
    '--no-renames',
    '--name-only',
    '-z',
    `--format=${headerMark}%m%ct`,
    '--ignore-submodules=none',
    '--no-ext-diff',
    '--no-textconv',
    '--no-mailmap',
    '--no-notes',
    '--no-show-signature',
    '--no-decorate',
    '--no-color',
    '--encoding=none',
    ...(since === null ? [oid] : ['--left-right', `${since}...${oid}`]),
    ...pathspec(directory),
  ];
}

// No path in git begins with it.
const headerMark = '/';
const lostMark = '<';
// The last second of the year 9999: a later one has no RFC 3339 form.
const lastSecond = 253_402_300_799;

/**
 * Reads what git tells as it comes. Of each commit there is a header, then either a line feed or an empty entry (after a
 * merge), then the paths.
 */
export function readAdditions(onAddition: (addition: Addition) => void): (chunk: Buffer) => void {
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

/** A date that can't be read is the epoch, as it is for git. */
function secondsOf(text: string): number {
  const seconds = Number.parseInt(text, 10);
  return Number.isNaN(seconds) ? 0 : Math.min(Math.max(seconds, 0), lastSecond);
}

/**
 * Paths in git are bytes. While they are compared, they are kept as byte strings (one character a byte), so that two
 * paths which are not UTF-8 stay two.
 */
export function toByteString(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1');
}

/** The text of a byte string; bytes that are not UTF-8 become U+FFFD. */
export function fromByteString(bytes: string): string {
  return Buffer.from(bytes, 'latin1').toString('utf8');
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
