import { notFound } from './failures.ts';

/** A repository as GitHub addresses it. */
export interface RepositoryName {
  readonly owner: string;
  readonly name: string;
}

/** Fails with `repository_not_found` where no repository can have the name. */
export function parseName(repository: string): RepositoryName {
  const [owner, name, ...deeper] = repository.split('/');
  if (!isSegment(owner) || !isSegment(name) || deeper.length > 0) throw notFound(repository);
  return { owner, name };
}

/** Dots alone would be taken for a way up by whatever resolves the URL, encoded or not. */
function isSegment(segment: string | undefined): segment is string {
  return segment !== undefined && segment !== '' && segment !== '.' && segment !== '..' && segment.isWellFormed();
}
