import { expect, test } from 'vitest';
import { splitAtNul } from '../../../src/adapters/shared/git-process.ts';

test('entries that end with NUL are split, however they are cut, and one that is too long is refused', () => {
  const entries: string[] = [];
  const take = splitAtNul((entry) => void entries.push(entry), (limit) => new Error(`the limit is ${limit}`));
  for (const chunk of ['a', 'b\0', '\0c\0d', 'e\0f']) take(Buffer.from(chunk));
  expect(entries).toEqual(['ab', '', 'c', 'de']);
  const part = Buffer.alloc(64 << 10, 'x');
  expect(() => {
    for (let count = 0; count < 17; count += 1) take(part);
  }).toThrow('the limit is 1 MiB in one name or subject');
});
