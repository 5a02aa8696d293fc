import type { RepositoryInfo } from '../../../ports/git-provider.ts';

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
  /** Null where the repository is empty. */
  readonly head: string | null;
  readonly directory: string;
  readonly files: readonly TreeFile[];
  /** Is the commit that was asked about part of the head's history? */
  descends(signal: AbortSignal): Promise<boolean>;
}

export interface OpenRequest {
  /** As it was asked for. */
  readonly repository: string;
  /** The directory to look below, by the last segment of the repository's actual path. */
  readonly directoryOf: (name: string) => string;
  /** A commit of which something is known. */
  readonly earlier: string | null;
}

export interface DateRequest {
  /** The actual `owner/name`. */
  readonly path: string;
  readonly head: string;
  readonly files: readonly string[];
}

/** The dates of the first commits by path, in ms. Those that have no history are not in it. */
export type Dates = ReadonlyMap<string, number>;

/** Reads repositories from GitHub, in one of the ways that there are. */
export interface Source {
  find(repository: string, signal: AbortSignal): Promise<RepositoryInfo>;
  open(request: OpenRequest, signal: AbortSignal): Promise<Opened>;
  datesOf(request: DateRequest, signal: AbortSignal): Promise<Dates>;
}
