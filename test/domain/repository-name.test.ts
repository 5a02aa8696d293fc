import { posix } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isRepositoryPattern, matchesRepository, maxRepositoryNameLength, parseRepositoryName } from '../../src/domain/repository-name.ts';

const hostile = fc.array(
  fc.oneof(fc.constantFrom('/', '//', '.', '..', '\\', '\0', '\u007f', '%2e', '~', ' ', 'a', '.git', '\ud800'), fc.string({ unit: 'binary', maxLength: 4 })),
  { maxLength: 12 },
).map((parts) => parts.join(''));

describe('parseRepositoryName', () => {
  test.each(['owner/name', 'group/sub/name', 'name', '.skep', 'a b/c d', 'ümläut/名前', 'github.com/owner/name', '...', 'a'.repeat(maxRepositoryNameLength)])('accepts %j', (name) => {
    expect(parseRepositoryName(name)).toEqual({ ok: true, segments: name.split('/') });
  });

  test.each([
    ['', 'empty'], ['/a', 'leading_slash'], ['a//b', 'empty_segment'], ['a/', 'empty_segment'], ['.', 'dot_segment'], ['..', 'dot_segment'],
    ['a/../b', 'dot_segment'], ['a/.', 'dot_segment'], ['a\\b', 'backslash'], ['a\nb', 'control_character'], ['a\0', 'control_character'],
    ['\u0085', 'control_character'], ['\ud800', 'malformed_unicode'], ['a'.repeat(maxRepositoryNameLength + 1), 'too_long'],
  ])('refuses %j: %s', (name, problem) => {
    expect(parseRepositoryName(name)).toEqual({ ok: false, problem });
  });

  test('never throws, and accepts no name that leaves the directory it is resolved in', () => {
    fc.assert(
      fc.property(hostile, (name) => {
        const result = parseRepositoryName(name);
        if (!result.ok) {
          expect(result.problem).not.toBe('');
          return;
        }
        expect(result.segments.join('/')).toBe(name);
        const resolved = posix.resolve('/root', name);
        expect(resolved).toBe(`/root/${name}`);
      }),
      { numRuns: 5000 },
    );
  });
});

test.each([
  ['acme/*', 'acme/shop', true],
  ['acme/*', 'acme/', true],
  ['acme/*', 'acme', false],
  ['acme/*', 'acme2/shop', false],
  ['acme/*', 'x/acme/shop', false],
  ['acme/*', 'acme/group/shop', false],
  ['acme/**', 'acme/group/shop', true],
  ['acme/**', 'acme', false],
  ['acme/shop', 'acme/shop', true],
  ['acme/shop', 'Acme/shop', false],
  ['acme/shop', 'acme/shop2', false],
  ['acme/web-*', 'acme/web-shop', true],
  ['acme/web-*', 'acme/api', false],
  ['*/docs', 'acme/docs', true],
  ['acme/s.op', 'acme/shop', false],
  ['acme/(shop|x)', 'acme/shop', false],
  ['github.com/acme/*', 'acme/shop', true],
  ['gitlab.com/acme/*', 'acme/shop', false],
  ['GitHub.com/acme/*', 'acme/shop', true],
  ['github.com/**', 'acme/group/shop', true],
  // A repository whose path begins with the name of a host does not belong to that host.
  ['gitlab.com/acme/*', 'gitlab.com/acme/shop', false],
  ['other.example/acme/*', 'other.example/acme/shop', true],
  ['acme/*.*', 'acme/.skep', true],
  ['acme/*', 'acme/.skep', true],
  ['acme/a*b*a', 'acme/aba', true],
  ['acme/a*b*a', 'acme/ab', false],
  ['acme/aa*aa', 'acme/aaa', false],
  ['*', 'shop', true],
  ['*', 'acme/shop', false],
  ['**', 'acme/shop', false],
] as const)('the pattern %s matches the repository %s: %s', (pattern, path, matches) => {
  expect(matchesRepository([pattern], path, ['github.com'], ['github.com', 'gitlab.com'])).toBe(matches);
});

test('one matching pattern is enough, and an empty list matches nothing', () => {
  expect(matchesRepository(['other/*', 'acme/shop'], 'acme/shop', [], [])).toBe(true);
  expect(matchesRepository([], 'acme/shop', [], [])).toBe(false);
});

test('a pattern with many stars is compared without exponential time', () => {
  expect(matchesRepository([`${'*a'.repeat(50)}/x`], `${'a'.repeat(1000)}/y`, [], [])).toBe(false);
  expect(matchesRepository([`${'*a'.repeat(50)}b`], 'a'.repeat(1000), [], [])).toBe(false);
});

test.each([
  ['acme/*', true], ['group/**', true], ['github.com/**', true], ['acme/shop', true], ['*/docs', true],
  ['**', false], ['**/shop', false], ['acme/**/shop', false], ['acme/x**', false], ['acme/shop.git', false], ['acme/*.git', false],
  ['', false], ['/acme', false], ['acme/', false],
] as const)('%s is a valid repository pattern: %s', (pattern, can) => {
  expect(isRepositoryPattern(pattern)).toBe(can);
});
