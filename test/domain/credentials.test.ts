import { expect, test } from 'vitest';
import { looksLikeCredential, maskUrlPasswords } from '../../src/domain/credentials.ts';

test.each(['a://:', 'a://', 'sk-', 'eyJ-', 'eyJaaaaaaaaaa-', 'a:', '@:', '"a://:'])('a long text of %j is searched for credentials without a delay', (unit) => {
  const text = unit.repeat(100_000 / unit.length);
  const began = performance.now();
  expect(looksLikeCredential(text)).toBe(false);
  expect(maskUrlPasswords(text)).toBe(text);
  expect(performance.now() - began).toBeLessThan(1000);
});

test.each([
  ['a://b:c@d', 'a://b:**********@d'],
  ['a://b:c@/d@e and f://:g@h', 'a://b:**********@e and f://:**********@h'],
  ['a://"b":c@d', 'a://"b":**********@d'],
  ['a://b:$C:d://e:f@g', 'a://b:$C:d://e:**********@g'],
  ['a://b:80/c@d', 'a://b:80/c@d'],
  ['a://b:@c', 'a://b:@c'],
])('the passwords of URLs in %j are masked', (text, masked) => {
  expect(maskUrlPasswords(text)).toBe(masked);
  expect(looksLikeCredential(text)).toBe(masked !== text);
});

test.each([
  ['sk-ask-sk-Abcdefghijklmnopqrst1', true],
  ['sk-abcdefghijklmnopqrstu sk-Abcdefghijklmnopqrst1', true],
  ['task-Abcdefghijklmnopqrst1', false],
  ['eyJ-eyJaaaaaaaaaa.eyJbbbbbbbbbb.cccccccccc', true],
  ['eyJaaa.eyJbbbbbbbbbb.eyJcccccccccc.dddddddddd', true],
  ['keyJaaaaaaaaaa.eyJbbbbbbbbbb.cccccccccc', false],
])('%j is recognized as a credential: %j', (text, isCredential) => {
  expect(looksLikeCredential(text)).toBe(isCredential);
});
