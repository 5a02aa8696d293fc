import type { RepositoryInfo } from '../../../ports/git-provider.ts';
import type { Head, OpenRequest, TreeFile } from '../incremental-listing.ts';
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

/** A repository and one of its directories, at the same commit. */
export interface OpenedRepository {
  /** Its `id` is the `owner/name` that GitHub has. */
  readonly head: Head;
  readonly directory: string;
  readonly files: readonly TreeFile[];
  /** Is the earlier commit part of the head's history? */
  descends(signal: AbortSignal): Promise<boolean>;
}

export interface DateRequest {
  /** The actual `owner/name`. */
  readonly path: string;
  readonly commit: string;
  readonly files: readonly string[];
}

/** Reads repositories from GitHub: by GraphQL with a credential, by REST without. */
export interface RepositorySource {
  find(repository: string, signal: AbortSignal): Promise<RepositoryInfo>;
  open(request: OpenRequest, signal: AbortSignal): Promise<OpenedRepository>;
  /** Adds the dates of the first commits by path, in ms. Adds none for a path without a history. */
  addDates(request: DateRequest, dates: Map<string, number>, signal: AbortSignal): Promise<void>;
}
