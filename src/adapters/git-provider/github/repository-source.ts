import type { RepositoryInfo } from '../../../ports/git-provider.ts';
import { notFound } from './github-failures.ts';

/** A repository as GitHub addresses it. */
export interface RepositoryName {
  readonly owner: string;
  readonly name: string;
}

/** Throws `repository_not_found` if no repository can have the name. */
export function parseName(repository: string): RepositoryName {
  const [owner, name, ...deeper] = repository.split('/');
  if (!isSegment(owner) || !isSegment(name) || deeper.length > 0) throw notFound(repository);
  return { owner, name };
}

/** Dots alone would be taken for a way up by whatever resolves the URL, encoded or not. */
function isSegment(segment: string | undefined): segment is string {
  return segment !== undefined && segment !== '' && segment !== '.' && segment !== '..' && segment.isWellFormed();
}

/** A regular file. */
export interface TreeFile {
  /** Relative to the repository's root. */
  readonly path: string;
  /** The content's object id. */
  readonly oid: string;
}

/** A repository and one of its directories, at the same commit. */
export interface Opened {
  /** `owner/name`, as GitHub has them. */
  readonly path: string;
  readonly name: string;
  /** Null if the repository is empty. */
  readonly head: string | null;
  readonly directory: string;
  readonly files: readonly TreeFile[];
  /** Is the earlier commit part of the head's history? */
  descends(signal: AbortSignal): Promise<boolean>;
}

export interface OpenRequest {
  /** As the caller names it. */
  readonly repository: string;
  /** The directory to list, given the last segment of the repository's actual path. */
  readonly directoryOf: (name: string) => string;
  /** A commit that the cache knows. */
  readonly earlier: string | null;
}

export interface DateRequest {
  /** The actual `owner/name`. */
  readonly path: string;
  readonly head: string;
  readonly files: readonly string[];
}

/** The dates of the first commits by path, in ms. A path without a history is not in it. */
export type Dates = ReadonlyMap<string, number>;

/** Reads repositories from GitHub: by GraphQL with a credential, by REST without. */
export interface RepositorySource {
  find(repository: string, signal: AbortSignal): Promise<RepositoryInfo>;
  open(request: OpenRequest, signal: AbortSignal): Promise<Opened>;
  datesOf(request: DateRequest, signal: AbortSignal): Promise<Dates>;
}
