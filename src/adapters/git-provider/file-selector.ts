import type { DatedFile, DirectoryListing, FileQuery } from '../../ports/git-provider.ts';

/** A directory at the head of a repository. */
export interface Listed {
  /** The last segment of the repository's actual path. */
  readonly name: string;
  readonly directory: string;
  readonly files: readonly ListedFile[];
}

/** The date is in ms; null if nobody needed to know it. */
export interface ListedFile {
  readonly path: string;
  readonly createdAt: number | null;
}

/** Says which files a caller wants. The functions of the query are called once for each name and path. */
export interface FileSelector {
  readonly directoryOf: (name: string) => string;
  /** Does the caller need the date of the file? */
  readonly wants: (directory: string, path: string) => boolean;
  /** Returns the caller's part of a listing. Null if the listing was made for another caller, and lacks something. */
  select(listed: Listed): DirectoryListing | null;
}

export function createFileSelector(query: FileQuery): FileSelector {
  const directoryOf = memoize((name) => query.directory(name));
  const accepts = memoize((path) => query.accepts(path));
  const wants = (directory: string, path: string): boolean => accepts(path.slice(prefixOf(directory).length));
  return {
    directoryOf,
    wants,
    select({ name, directory, files }) {
      if (directoryOf(name) !== directory) return null;
      const wanted: DatedFile[] = [];
      for (const { path, createdAt } of files) {
        if (!wants(directory, path)) continue;
        if (createdAt === null) return null;
        wanted.push({ path, createdAt });
      }
      return { directory, files: wanted };
    },
  };
}

/** What the paths of the files below a directory begin with. */
export function prefixOf(directory: string): string {
  return directory === '' ? '' : `${directory}/`;
}

function memoize<T>(compute: (text: string) => T): (text: string) => T {
  const values = new Map<string, T>();
  return (text) => {
    const known = values.get(text);
    if (known !== undefined) return known;
    const value = compute(text);
    values.set(text, value);
    return value;
  };
}
