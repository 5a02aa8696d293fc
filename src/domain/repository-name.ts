/** Longest repository name that is taken, in characters. */
export const maxRepositoryNameLength = 1024;

export type RepositoryNameResult =
  | { readonly ok: true; readonly segments: readonly [string, ...string[]] }
  | { readonly ok: false; readonly problem: string };

// C0, DEL and C1.
// oxlint-disable-next-line no-control-regex -- control characters are what it looks for
const controlCharacter = /[\u0000-\u001f\u007f-\u009f]/u;

/**
 * Splits a decoded repository name (`owner/name`, `group/subgroup/name`, `host/owner/name`, a path below a root) into
 * its segments. Total: every string is either split, or refused with the problem in words. No accepted name can lead
 * out of where it is resolved: it has no empty, `.` or `..` segment, no backslash and no control character.
 */
export function parseRepositoryName(name: string): RepositoryNameResult {
  const problem = problemWith(name);
  if (problem !== null) return { ok: false, problem };
  const [first = '', ...rest] = name.split('/');
  return { ok: true, segments: [first, ...rest] };
}

function problemWith(name: string): string | null {
  if (name.length === 0) return 'must not be empty';
  if (name.length > maxRepositoryNameLength) return `must not be longer than ${maxRepositoryNameLength} characters`;
  if (!name.isWellFormed()) return 'must be well-formed Unicode';
  if (controlCharacter.test(name)) return 'must not contain a control character';
  if (name.includes('\\')) return 'must not contain a backslash';
  if (name.startsWith('/')) return 'must not begin with a slash';
  for (const segment of name.split('/')) {
    if (segment === '') return 'must not contain an empty segment';
    if (segment === '.' || segment === '..') return `must not contain the segment "${segment}"`;
  }
  return null;
}
