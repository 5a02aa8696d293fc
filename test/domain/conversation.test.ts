import { matchesGlob } from 'node:path';
import { expect, test } from 'vitest';
import { createSystemRandom } from '../../src/adapters/random/system-random.ts';
import { foldersOfOthers, foldTitle } from '../../src/domain/conversation.ts';
import { someConversation } from '../contracts/records.ts';

test.each([
  ['Résumé', 'resume'], ['re\u0301sume\u0301', 'RESUME'], ['Ångström', 'angstrom'], ['Ὀδυσσεύς', 'οδυσσευσ'], ['Ёлка', 'елка'], ['Straße', 'strasse'], ['İstanbul', 'istanbul'],
])('a search treats %s and %s as the same title', (one, other) => {
  expect(foldTitle(one)).toBe(foldTitle(other));
});

test.each([['가', '각'], ['か', 'が'], ['कि', 'के']])('a search keeps the marks of other scripts, so %s and %s differ', (one, other) => {
  expect([foldTitle(one), foldTitle(other)]).toEqual([one, other]);
  expect(foldTitle(other).includes(foldTitle(one))).toBe(false);
});

test('the folders of others have names in the form of the id, and only the conversation that started the sandbox has them', () => {
  const [id, other] = ['conv', 'conv'].map((prefix) => createSystemRandom().id(prefix));
  const conversation = someConversation(id ?? '', { startsSandbox: true });
  const matches = (name = '') => matchesGlob(name, foldersOfOthers(conversation) ?? '');
  expect([other, `${other}a`, other?.slice(1), 'conv-transformer-experiments-v1', 'conv'].map(matches)).toEqual([true, false, false, false, false]);
  expect(foldersOfOthers({ ...conversation, startsSandbox: false })).toBeNull();
});
