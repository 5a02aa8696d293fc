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

  test.each(['', '/a', 'a//b', 'a/', '.', '..', 'a/../b', 'a/.', 'a\\b', 'a\nb', 'a\0', '\u0085', '\ud800', 'a'.repeat(maxRepositoryNameLength + 1)])('refuses %j', (name) => {
    expect(parseRepositoryName(name)).toMatchObject({ ok: false, problem: expect.stringMatching(/^must/) });
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
