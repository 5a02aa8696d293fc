import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseYamlFrontMatter as parse } from '../../../src/adapters/front-matter/yaml-front-matter.ts';

const problemOf = (text: string) => {
  const { content, data, problem } = parse(text);
  expect([content, data]).toEqual([text, null]);
  return problem;
};

describe('Front matter', () => {
  test.each([
    ['---\na: 1\n---\ntext\n', { a: 1 }, 'text\n'],
    ['---\r\na: 1\r\nb: |\r\n  x\r\n---\r\ntext\r\n', { a: 1, b: 'x\n' }, 'text\r\n'],
    ['---\r\na: [b]\r\n---\r\ntext', { a: ['b'] }, 'text'],
    ['---\r\na: b\r\n---\r\ntext', { a: 'b' }, 'text'],
    ['---\r\n---\r\ntext', {}, 'text'],
    ['--- \t\na: 1\n---\t \ntext', { a: 1 }, 'text'],
    ['---\na: 1\n---', { a: 1 }, ''],
    ['---\n---\ntext', {}, 'text'],
    ['\n \n ---\na: 1\n---\ntext', { a: 1 }, 'text'],
    ['---\n# nothing but a comment\n---\ntext', {}, 'text'],
    ['---\na: 1\n---\ntext\n---\nmore', { a: 1 }, 'text\n---\nmore'],
    ['---\na: --- b\n---\ntext', { a: '--- b' }, 'text'],
    ['---\na: 1\na: 2\n---\n', { a: 2 }, ''],
    ['---\non: yes\nat: 2026-01-02\nsize: .inf\n1: x\n---\n', { on: 'yes', at: '2026-01-02', size: '.inf', '1': 'x' }, ''],
    ['---\n{"a": ["b"]}\n---\n', { a: ['b'] }, ''],
    ['---\na: !!js/function x\n---\n', { a: 'x' }, ''],
    ['---\na: 12345678901234567890\nb: -9007199254740991\nc: [0xffffffffffffffff, 0x1F]\n---\n', { a: '12345678901234567890', b: -9007199254740991, c: ['0xffffffffffffffff', 31] }, ''],
    ['---\na: [.nan, -.INF, 1e400, 1e20, 0.5]\n12345678901234567890: b\n---\n', { a: ['.nan', '-.INF', '1e400', 1e20, 0.5], '12345678901234567890': 'b' }, ''],
    ['---\na: !!binary aGVsbG8=\nb: !!timestamp 2001-12-14\nc: !!set {d, e}\n---\n', { a: 'aGVsbG8=', b: '2001-12-14', c: { d: null, e: null } }, ''],
  ])('is parsed in %j', (text, data, content) => {
    expect(parse(text)).toEqual({ content, data, problem: null });
  });

  test.each(['', 'text', '\n---\n# title\n\ntext', '\n\n---\ntext\n\n---\nmore', '\n---\na: b: c\n---\n', '----\na: 1\n----\n', '--- a\n---\n', '# title\n---\na: 1\n---\n', '---'])(
    'is not found in %j',
    (text) => {
      expect(parse(text)).toEqual({ content: text, data: null, problem: null });
    },
  );

  test.each([
    ['---\na: 1\n', 'not_closed', null],
    ['---\na: 1\n ---\n', 'not_closed', null],
    ['---\na: 1\n---text\n', 'not_closed', null],
    ['---\na: 1\nb: [\n---\n', 'not_yaml', 3],
    ['---\na: b: c\n---\n', 'not_yaml', 2],
    ['---\na: 1\n...\nb: 2\n---\n', 'not_yaml', 4],
    ['---\n- a\n---\n', 'not_a_mapping', null],
    ['---\ntext\n---\n', 'not_a_mapping', null],
    ['---\na: &a b\nc: *a\n---\n', 'alias', null],
    ['---\na: &a [*a]\n---\n', 'alias', null],
    [`---\na: ${'x'.repeat(16_384)}\n---\n`, 'too_long', null],
  ])('is reported as broken in %j', (text, problem, line) => {
    expect(problemOf(text)).toEqual({ code: 'front_matter', problem, line });
  });

  test('is refused if it has aliases that would need too much memory', () => {
    const levels = Array.from({ length: 40 }, (_, level) => `k${level + 1}: &k${level + 1} [*k${level}, *k${level}]`);
    for (const first of ['k0: &k0 [x]', 'k0: &k0 []', 'k0: &k0 {}']) {
      expect(problemOf(['---', first, ...levels, '---', ''].join('\n'))?.problem).toBe('alias');
    }
  });

  test('is parsed or reported if it is nested as deeply as possible', () => {
    for (const [open, close] of [['[', ']'], ['{a: ', '}'], ['- ', ''], ['? ', '']] as const) {
      const depth = Math.floor(16_000 / (open.length + close.length));
      const { data, problem } = parse(`---\n${open.repeat(depth)}${close.repeat(depth)}\n---\n`);
      expect([data === null, problem === null].filter(Boolean)).toHaveLength(1);
    }
  });

  test('does not change any prototype', () => {
    const { data } = parse('---\n__proto__: { polluted: true }\nconstructor: { prototype: { polluted: true } }\n---\n');
    expect(Object.keys(data ?? {})).toEqual(['__proto__', 'constructor']);
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  });

  test('never makes parse() throw, and its data is always valid JSON', () => {
    const piece = fc.constantFrom('---', '\n', '\r\n', 'a: ', '- ', '[', ']', '{', '}', '&a ', '*a', '!!set ', '? ', '|', '"', "'", '\t', '...', '%YAML 1.1', 'x', '<<: ', '\ud800');
    const text = fc.array(fc.oneof(piece, fc.string({ unit: 'binary' })), { maxLength: 60 }).map((pieces) => `---\n${pieces.join('')}`);
    fc.assert(fc.property(text, (given) => {
      const { content, data, problem } = parse(given);
      expect(given.endsWith(content)).toBe(true);
      if (problem !== null) expect([content, data]).toEqual([given, null]);
      expect(JSON.parse(JSON.stringify(data))).toEqual(data);
    }));
  });
});
