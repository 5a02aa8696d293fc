import { expect, test } from 'vitest';
import { foldTitle } from '../../src/domain/conversation.ts';

test.each([
  ['Résumé', 'resume'], ['re\u0301sume\u0301', 'RESUME'], ['Ångström', 'angstrom'], ['Ὀδυσσεύς', 'οδυσσευσ'], ['Ёлка', 'елка'], ['Straße', 'strasse'], ['İstanbul', 'istanbul'],
])('a search treats %s and %s as the same title', (one, other) => {
  expect(foldTitle(one)).toBe(foldTitle(other));
});

test.each([['가', '각'], ['か', 'が'], ['कि', 'के']])('a search keeps the marks of other scripts, so %s and %s differ', (one, other) => {
  expect([foldTitle(one), foldTitle(other)]).toEqual([one, other]);
  expect(foldTitle(other).includes(foldTitle(one))).toBe(false);
});
