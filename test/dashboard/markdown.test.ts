import fc from 'fast-check';
import { expect, test } from 'vitest';
import { blocksOf } from '../../src/dashboard/ui/markdown-parser.ts';

const parts = ['a', ' ', '\n', '\n\n', '    ', '\t', '- ', '* ', '1. ', '2. ', '> ', '# ', '```', '~~~', '---', '===', '| a |', '|-|', '*', '`', '<b>'];

test('a text that arrives in parts has the same blocks as the whole text', () => {
  fc.assert(fc.property(fc.array(fc.constantFrom(...parts), { maxLength: 40, size: 'max' }), (given) => {
    let [text, known]: [string, readonly string[]] = ['', []];
    for (const part of given) known = blocksOf(text += part, known);
    expect(known).toEqual(blocksOf(text, []));
    expect(text.trim() === '' || known.join('') === text).toBe(true);
  }), { numRuns: 2000 });
});

test('all but the last blocks of a growing text are kept, and none of another text', () => {
  const known = ['a\n\nb\n\n', 'c\n\n', 'd'];
  expect(blocksOf('a\n\nb\n\nc\n\nd\n# e', known)).toEqual(['a\n\nb\n\n', 'c\n\n', 'd\n', '# e']);
  expect(blocksOf('e', known)).toEqual(['e']);
});
