import { describe, expect, test } from 'vitest';
import { applicableMicroagents, type ConversationMicroagent, fitIntoContext, maxContextBytes, microagentsEventData } from '../../src/domain/applicable-microagents.ts';

const one = (path: string, triggers: readonly string[] = [], isSettled = false): ConversationMicroagent => ({ path, blobId: path, triggers, isSettled });
const text = (path: string, content: string) => ({ microagent: one(path), trigger: null, content });

describe('a trigger', () => {
  test.each([
    ['deploy', 'Please deploy it', true],
    ['deploy', 'DEPLOY!', true],
    ['Deploy', 'deploy', true],
    ['deploy', 'Where is the deployment?', false],
    ['deploy', 'redeploy it', false],
    ['deploy', 'the variable deploy_key', false],
    ['deploy', 'src/deploy/aws.ts', true],
    ['c++', 'Is it C++?', true],
    ['c++', 'C', false],
    ['a.b', 'axb', false],
    ['/test', 'run /test now', true],
    ['code review', 'a Code\nReview, please', true],
    ['größe', 'die GRÖSSE', false],
    ['größe', 'die GRÖßE', true],
    ['测试', '运行 测试 吧', true],
    ['部署', '请帮我部署服务', true],
    ['テスト', 'ユニットテストを書く', true],
    ['npm', 'これはnpmです', true],
    ['npm', 'pnpmです', false],
    ['测试', 'run测试now', true],
    ['\u00c9cole', 'l’E\u0301cole', true],
    ['E\u0301cole', '\u00e9cole', true],
    ['학교', '학교에서', false],
    ['(', 'what (', true],
    ['', 'anything', false],
    ['  ', 'any  thing', false],
  ])('%j matches the message %j: %s', (trigger, text, isMentioned) => {
    expect(applicableMicroagents([one('a', [trigger])], text).length === 1).toBe(isMentioned);
  });
});

test('microagents without triggers always apply and come first, settled ones never apply', () => {
  const all = [one('a', ['tea', 'cup']), one('b'), one('c', [], true), one('d', ['tea'], true), one('e')];
  expect(applicableMicroagents(all, 'a cup of tea').map(({ microagent: { path }, trigger }) => [path, trigger])).toEqual([['b', null], ['e', null], ['a', 'tea']]);
});

test('a microagent that is too large is left out, and a smaller one after it is still added', () => {
  const { given, tooLarge } = fitIntoContext([text('a', 'x'.repeat(maxContextBytes - 2)), text('b', 'ß!'), text('c', '2')]);
  expect(given.map(({ microagent }) => microagent.path)).toEqual(['a', 'c']);
  expect(tooLarge).toEqual([{ path: 'b', why: 'too_large' }]);
});

test('an event lists at most 100 microagents that were left out, and counts all of them', () => {
  const leftOut = Array.from({ length: 250 }, (_, index) => ({ path: `${index}.md`, why: 'too_many' as const }));
  const told = microagentsEventData([], leftOut);
  expect([told.leftOut.length, told.leftOutCount]).toEqual([100, 250]);
});
