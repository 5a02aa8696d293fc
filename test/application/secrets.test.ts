import fc from 'fast-check';
import { expect, test } from 'vitest';
import { SecretRedactor } from '../../src/application/secrets.ts';

/** The last ones: the beginning of another, one that begins within another and ends after it, and one inside another. */
const secrets = ['sk-0123', '(a+b)*c', 'aaaab', 'sk-01234567', '2345678', '1234'];

/** Texts in parts, full of secrets and of text that looks like the beginning of one. */
const parts = fc.array(fc.array(fc.constantFrom(...secrets, 'sk-', '01', '23', '4567', '8', 'a', 'aaa', 'b', '(a+', 'b)*', 'c', ' ', 'x'), { maxLength: 4 }).map((pieces) => pieces.join('')), { maxLength: 12 });

test('a text in parts is redacted like the whole text, wherever it is cut', () => {
  const redactor = new SecretRedactor(secrets);
  fc.assert(
    fc.property(parts, (texts) => {
      let [said, held] = ['', ''];
      for (const text of texts) {
        const next = redactor.redactChunk(held + text);
        said += next.safe;
        held = next.held;
        expect(secrets.some((secret) => said.includes(secret))).toBe(false);
        expect(held.length).toBeLessThan(Math.max(...secrets.map(({ length }) => length)));
      }
      expect(said + redactor.redactText(held)).toBe(redactor.redactText(texts.join('')));
    }),
    { numRuns: 2000 },
  );
});

test('a secret that is the beginning of a longer one waits for the rest, and hides no end of a longer one', () => {
  const redactor = new SecretRedactor(['abcd', 'abcdefgh', '12abcdef']);
  expect(redactor.redactChunk('abcd')).toEqual({ safe: '', held: 'abcd' });
  expect(redactor.redactChunk('abcdefgh')).toEqual({ safe: '**********', held: '' });
  expect(redactor.redactChunk('abcd!')).toEqual({ safe: '**********!', held: '' });
  expect(redactor.redactTail('abcdef!')).toBe('!');
});

test('text without a secret passes unchanged and at once', () => {
  const none = new SecretRedactor(['', 'abc']);
  const data = { text: 'abc', list: ['abc'] };
  expect(none.redactChunk('abcabc')).toEqual({ safe: 'abcabc', held: '' });
  expect(none.redactJson(data)).toBe(data);
  expect(new SecretRedactor(['secret']).redactJson({ a: ['my secret', 1, null], b: { c: 'none' } })).toEqual({ a: ['my **********', 1, null], b: { c: 'none' } });
});

test('the end of a secret at the beginning of a cut text is removed', () => {
  const redactor = new SecretRedactor(secrets);
  fc.assert(
    fc.property(fc.constantFrom(...secrets), fc.nat(6), parts, (secret, cut, texts) => {
      const text = `${secret}|${texts.join('')}`;
      const clean = redactor.redactTail(text.slice(cut));
      expect(secrets.some((one) => clean.includes(one))).toBe(false);
      if (cut > 0 && secret.length - cut >= 4) expect(clean.startsWith('|')).toBe(true);
    }),
    { numRuns: 2000 },
  );
});

test('a text that begins with the last character of a secret by chance is not changed', () => {
  expect(new SecretRedactor(['0123456c']).redactTail('cannot find it')).toBe('cannot find it');
});

/** Returns the parts that come out of a redactor of bytes. */
async function passed(values: readonly string[], chunks: readonly Uint8Array[], isTail: boolean): Promise<Buffer[]> {
  const out: Buffer[] = [];
  for await (const chunk of ReadableStream.from(chunks).pipeThrough(new SecretRedactor(values).redactStream({ isTail }))) out.push(Buffer.from(chunk));
  return out;
}

test('bytes in parts are redacted like the whole, and other bytes are not changed', async () => {
  const values = [...secrets, 'pässwörd'];
  const piece = fc.oneof(fc.constantFrom(...values, 'sk-', 'aaa', 'p\u00e4ss', ' ').map((text) => Buffer.from(text)), fc.uint8Array({ maxLength: 5 }));
  await fc.assert(
    fc.asyncProperty(fc.array(piece, { maxLength: 8 }), fc.array(fc.nat(60), { maxLength: 6 }), fc.boolean(), async (pieces, cuts, isTail) => {
      const all = Buffer.concat(pieces);
      const at = [0, ...cuts.map((cut) => Math.min(cut, all.length)).toSorted((a, b) => a - b), all.length];
      const chunks = at.slice(1).map((end, index) => all.subarray(at[index], end));
      const latin1 = new SecretRedactor(values.map((value) => Buffer.from(value).toString('latin1')));
      const whole = all.toString('latin1');
      expect(Buffer.concat(await passed(values, chunks, isTail)).toString('latin1')).toBe(isTail ? latin1.redactTail(whole) : latin1.redactText(whole));
    }),
    { numRuns: 1000 },
  );
});

test('the end of a secret at the beginning of cut bytes is removed, and other bytes pass at once', async () => {
  const [secret] = secrets as [string];
  for (let cut = 1; cut <= secret.length - 4; cut += 1) {
    const chunks = [...Buffer.from(`${secret.slice(cut)}| and more`)].map((byte) => Uint8Array.of(byte));
    expect(Buffer.concat(await passed(secrets, chunks, true)).toString()).toBe('| and more');
  }
  expect((await passed(secrets, [Buffer.from('one'), Buffer.from(`${secret}!`)], true)).map(String)).toEqual(['one', '**********!']);
  expect((await passed(secrets, [Buffer.from('3 and')], true)).map(String)).toEqual(['3 and']);
});
