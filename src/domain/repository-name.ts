/** Longest repository name that is accepted, in characters. */
export const maxRepositoryNameLength = 1024;

export type RepositoryNameProblem =
  | 'empty' | 'too_long' | 'malformed_unicode' | 'control_character' | 'backslash' | 'leading_slash' | 'empty_segment' | 'dot_segment';

export type RepositoryNameResult =
  | { readonly ok: true; readonly segments: readonly [string, ...string[]] }
  | { readonly ok: false; readonly problem: RepositoryNameProblem };

// C0, DEL and C1.
// oxlint-disable-next-line no-control-regex -- control characters are what it looks for
const controlCharacter = /[\u0000-\u001f\u007f-\u009f]/u;

/**
 * Splits a decoded repository name (`owner/name`, `group/subgroup/name`, `host/owner/name`, a path below a root) into
 * its segments, or returns what is wrong with it. An accepted name can't lead out of the place where it is resolved: it has
 * no empty, `.` or `..` segment, no backslash and no control character.
 */
export function parseRepositoryName(name: string): RepositoryNameResult {
  const problem = problemWith(name);
  if (problem !== null) return { ok: false, problem };
  const [first = '', ...rest] = name.split('/');
  return { ok: true, segments: [first, ...rest] };
}

function problemWith(name: string): RepositoryNameProblem | null {
  if (name.length === 0) return 'empty';
  if (name.length > maxRepositoryNameLength) return 'too_long';
  if (!name.isWellFormed()) return 'malformed_unicode';
  if (controlCharacter.test(name)) return 'control_character';
  if (name.includes('\\')) return 'backslash';
  if (name.startsWith('/')) return 'leading_slash';
  const segments = name.split('/');
  if (segments.includes('')) return 'empty_segment';
  return segments.includes('.') || segments.includes('..') ? 'dot_segment' : null;
}
