import { splitAtNul } from './byte-string.ts';
import { pathspec } from './tree.ts';

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
