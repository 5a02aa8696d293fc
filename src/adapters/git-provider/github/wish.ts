import type { DatedFile, DirectoryListing, FileQuery } from '../../../ports/git-provider.ts';
import type { Listed } from './listings.ts';
import { prefixOf } from './rest-tree.ts';

/** What a caller wants, whose functions are called once for each name and path. */
export interface Wish {
  readonly directoryOf: (name: string) => string;
  readonly wants: (directory: string, path: string) => boolean;
  /** The listing that the caller gets; null where it was made for another, and lacks something. */
  granted(listed: Listed, confirmedAt: number | null): DirectoryListing | null;
}

export function createWish(query: FileQuery): Wish {
  const directoryOf = remembering((name) => query.directory(name));
  const accepts = remembering((path) => query.accepts(path));
  const wants = (directory: string, path: string): boolean => accepts(path.slice(prefixOf(directory).length));
  return {
    directoryOf,
    wants,
    granted({ name, directory, files }, confirmedAt) {
      if (directoryOf(name) !== directory) return null;
      const wanted: DatedFile[] = [];
      for (const { path, createdAt } of files) {
        if (!wants(directory, path)) continue;
        if (createdAt === null) return null;
        wanted.push({ path, createdAt });
      }
      return { directory, files: wanted, ...(confirmedAt === null ? {} : { confirmedAt }) };
    },
  };
}

function remembering<T>(ask: (text: string) => T): (text: string) => T {
  const answers = new Map<string, T>();
  return (text) => {
    const known = answers.get(text);
    if (known !== undefined) return known;
    const answer = ask(text);
    answers.set(text, answer);
    return answer;
  };
}
