import fc from 'fast-check';
import { expect, test } from 'vitest';
import { SecretRedactor } from '../../../src/application/agents/secret-redactor.ts';

const secrets = ['sk-0123', '(a+b)*c', 'aaaab'];

/** Texts full of secrets and of what looks like their beginnings, in parts. */
const parts = fc.array(fc.array(fc.constantFrom(...secrets, 'sk-', '01', '23', 'a', 'aaa', 'b', '(a+', 'b)*', 'c', ' ', 'x'), { maxLength: 4 }).map((pieces) => pieces.join('')), { maxLength: 12 });

test('a text in parts is scrubbed as the whole is, wherever it is cut', () => {
  const scrubber = new SecretRedactor(secrets);
  fc.assert(
    fc.property(parts, (texts) => {
      let [said, held] = ['', ''];
      for (const text of texts) {
        const next = scrubber.partial(held + text);
        said += next.said;
        held = next.held;
        expect(secrets.some((secret) => said.includes(secret))).toBe(false);
        expect(held.length).toBeLessThan(Math.max(...secrets.map(({ length }) => length)));
      }
      expect(said + scrubber.text(held)).toBe(scrubber.text(texts.join('')));
    }),
    { numRuns: 2000 },
  );
});

test('what is no secret passes as it is, and at once', () => {
  const none = new SecretRedactor(['', 'abc']);
  const data = { text: 'abc', list: ['abc'] };
  expect(none.partial('abcabc')).toEqual({ said: 'abcabc', held: '' });
  expect(none.data(data)).toBe(data);
  expect(new SecretRedactor(['secret']).data({ a: ['my secret', 1, null], b: { c: 'none' } })).toEqual({ a: ['my **********', 1, null], b: { c: 'none' } });
});

test('of a text that was cut at its beginning, the end of a secret does not stay', () => {
  const scrubber = new SecretRedactor(secrets);
  fc.assert(
    fc.property(fc.constantFrom(...secrets), fc.nat(6), parts, (secret, cut, texts) => {
      const text = `${secret}|${texts.join('')}`;
      const clean = scrubber.rest(text.slice(cut));
      expect(secrets.some((one) => clean.includes(one))).toBe(false);
      if (cut > 0 && cut < secret.length) expect(clean.startsWith('|')).toBe(true);
    }),
    { numRuns: 2000 },
  );
});
