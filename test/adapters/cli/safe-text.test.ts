import { describe, expect, test } from 'vitest';
import { safeLine, safeText } from '../../../src/adapters/cli/safe-text.ts';
import { table } from '../../../src/adapters/cli/tables.ts';

describe('text that Skep did not write', () => {
  test.each([
    ['plain \u{1f600} text\n\twith lines', 'plain \u{1f600} text\n\twith lines'],
    ['\u001b[31mred\u001b[0m', 'red'],
    ['\u001b]8;;https://example.org\u0007link\u001b]8;;\u0007', 'link'],
    ['\u009b2Jgone', 'gone'],
    ['a\u0008b\u007fc\u0000d\re', 'abcde'],
    ['\u202egnp.exe\u2066', 'gnp.exe'],
    ['\u001b', ''],
  ])('%j is shown as %j', (text, shown) => {
    expect(safeText(text)).toBe(shown);
  });

  test('takes linear time for escape sequences that never end', () => {
    const begun = performance.now();
    expect(safeText('\u001b]8;;'.repeat(40_000))).toBe('8;;'.repeat(40_000));
    expect(performance.now() - begun).toBeLessThan(5000);
  });

  test('does not start a new line if it is a part of a line', () => {
    expect(safeLine(' one\r\n  2  Yes\u2028three\u001b[2K ')).toBe('one 2 Yes three');
    expect(table(['ID', 'TITLE'], [['a', 'one\ntwo'], ['bcd', '\u001b[31m']])).toBe('ID   TITLE\na    one two\nbcd\n');
  });
});
