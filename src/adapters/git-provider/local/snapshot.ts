import type { DatedFile } from '../../../ports/git-provider.ts';
import { fromByteString } from './byte-string.ts';
import { failed } from './failures.ts';

/** What is known of a directory at one commit. */
export interface Snapshot {
  readonly oid: string;
  /** Where the history is cut off, as `readShallow` tells it. */
  readonly shallow: string;
  readonly files: readonly DatedFile[];
  /** When each path that the history ever had came into it; null where nobody needed to know. */
  readonly dates: PathDates | null;
}

/** From a path, as a byte string, to the earliest committer date, in seconds, of a commit that adds it. */
export type PathDates = ReadonlyMap<string, number>;

/** The dates of the paths; null where one has none. */
export function dateFiles(paths: readonly string[], dates: PathDates): DatedFile[] | null {
  const files: DatedFile[] = [];
  for (const path of paths) {
    const seconds = dates.get(path);
    if (seconds === undefined) return null;
    files.push({ path: fromByteString(path), createdAt: seconds * 1000 });
  }
  return files;
}

export function undated(): Error {
  return failed("the repository's history does not say where its files come from");
}
