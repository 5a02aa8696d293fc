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

/**
 * Returns true if one of the patterns matches the repository's path. `*` matches any characters within a segment; `**`, as the last of
 * several segments, matches one or more segments: `acme/*`, `group/**`. If a pattern begins with one of the `configured` hosts, it matches
 * only if that host is one of the provider's `hosts` (lower case). The case of letters must be that of the git host.
 */
export function matchesRepository(
  patterns: readonly string[], path: string, hosts: readonly string[], configured: readonly string[],
): boolean {
  const segments = path.split('/');
  return patterns.some((pattern) => {
    const [first = '', ...rest] = pattern.split('/');
    const host = first.toLowerCase();
    if (rest.length > 0 && configured.includes(host)) return hosts.includes(host) && matchesSegments(rest, segments);
    return rest.length === 0 ? matchesSegment(first, path) && segments.length === 1 : matchesSegments([first, ...rest], segments);
  });
}

function matchesSegments(patterns: readonly string[], segments: readonly string[]): boolean {
  const isOpen = patterns.at(-1) === '**';
  const fixed = isOpen ? patterns.slice(0, -1) : patterns;
  const fits = isOpen ? segments.length > fixed.length : segments.length === fixed.length;
  return fits && fixed.every((pattern, index) => matchesSegment(pattern, segments[index] ?? ''));
}

/** Matches each part between two `*` at its first occurrence, so the time is linear for any pattern. */
function matchesSegment(pattern: string, segment: string): boolean {
  const [head = '', ...parts] = pattern.split('*');
  const tail = parts.pop();
  if (tail === undefined) return segment === head;
  if (!segment.startsWith(head) || !segment.endsWith(tail)) return false;
  let at = head.length;
  for (const part of parts) {
    const found = segment.indexOf(part, at);
    if (found === -1) return false;
    at = found + part.length;
  }
  return at <= segment.length - tail.length;
}

/** Returns true if the pattern can match a repository: a valid name without the ending `.git`, with `**` only as its last segment. */
export function isRepositoryPattern(pattern: string): boolean {
  const parsed = parseRepositoryName(pattern);
  if (!parsed.ok || pattern.endsWith('.git')) return false;
  const { segments } = parsed;
  return segments.every((segment, index) => !segment.includes('**') || (segment === '**' && index > 0 && index === segments.length - 1));
}
