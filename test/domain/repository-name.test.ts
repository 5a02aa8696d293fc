import { posix } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { maxRepositoryNameLength, parseRepositoryName } from '../../src/domain/repository-name.ts';

const hostile = fc.array(
  fc.oneof(fc.constantFrom('/', '//', '.', '..', '\\', '\0', '\u007f', '%2e', '~', ' ', 'a', '.git', '\ud800'), fc.string({ unit: 'binary', maxLength: 4 })),
  { maxLength: 12 },
).map((parts) => parts.join(''));

describe('parseRepositoryName', () => {
  test.each(['owner/name', 'group/sub/name', 'name', '.skep', 'a b/c d', 'ümläut/名前', 'github.com/owner/name', '...', 'a'.repeat(maxRepositoryNameLength)])('takes %j', (name) => {
    expect(parseRepositoryName(name)).toEqual({ ok: true, segments: name.split('/') });
  });

  test.each([
    ['', 'empty'], ['/a', 'leading_slash'], ['a//b', 'empty_segment'], ['a/', 'empty_segment'], ['.', 'dot_segment'], ['..', 'dot_segment'],
    ['a/../b', 'dot_segment'], ['a/.', 'dot_segment'], ['a\\b', 'backslash'], ['a\nb', 'control_character'], ['a\0', 'control_character'],
    ['\u0085', 'control_character'], ['\ud800', 'malformed_unicode'], ['a'.repeat(maxRepositoryNameLength + 1), 'too_long'],
  ])('refuses %j: %s', (name, problem) => {
    expect(parseRepositoryName(name)).toEqual({ ok: false, problem });
  });

  test('is total, and no name that it takes leads out of where it is resolved', () => {
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
