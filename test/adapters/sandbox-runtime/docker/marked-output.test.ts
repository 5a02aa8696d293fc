import assert from 'node:assert/strict';
import { test } from 'vitest';
import { splitAtMarks } from '../../../../src/adapters/sandbox-runtime/docker/marked-output.ts';

const mark = '\u001eabc-def';

type Found = string | { readonly event: string; readonly code: number };

/** Returns the marked lines, and the bytes between them as one text each. */
async function readAll(chunks: readonly Uint8Array[]): Promise<readonly Found[]> {
  const found: Found[] = [];
  for await (const next of splitAtMarks(ReadableStream.from(chunks), mark)) {
    const last = found.at(-1);
    if (!(next instanceof Uint8Array)) found.push(next);
    else if (typeof last === 'string') found.splice(-1, 1, last + Buffer.from(next).toString('latin1'));
    else found.push(Buffer.from(next).toString('latin1'));
  }
  return found;
}

const cases = [
  ['an output with marked lines', `${mark} begin 0\none\ntwo${mark} code 137\nthree${mark} end 0\n`,
    [{ event: 'begin', code: 0 }, 'one\ntwo', { event: 'code', code: 137 }, 'three', { event: 'end', code: 0 }]],
  ['two marked lines in a row', `${mark} end 0\n${mark} begin 0\n`, [{ event: 'end', code: 0 }, { event: 'begin', code: 0 }]],
  ['a mark without what follows it', `a${mark} b${mark}${mark} end 7\n${mark} endless\n${mark}`,
    [`a${mark} b${mark}`, { event: 'end', code: 7 }, `${mark} endless\n${mark}`]],
  ['the first bytes of a mark', `\u001e\u001eab\u001eabc-de${mark.slice(0, -1)}${mark} end 1\n\u001e`,
    [`\u001e\u001eab\u001eabc-de${mark.slice(0, -1)}`, { event: 'end', code: 1 }, '\u001e']],
  ['bytes that are no text', `\u00ff\u0000\u0080${mark} end 0\n\u00c3`, ['\u00ff\u0000\u0080', { event: 'end', code: 0 }, '\u00c3']],
  ['nothing', '', []],
] as const;

test.each(cases)('%s is divided at its marks, wherever its chunks end', async (_, text, expected) => {
  const bytes = Buffer.from(text, 'latin1');
  assert.deepEqual(await readAll([bytes]), expected);
  assert.deepEqual(await readAll([...bytes].map((byte) => Uint8Array.of(byte))), expected);
  for (let at = 0; at <= bytes.length; at += 1) assert.deepEqual(await readAll([bytes.subarray(0, at), bytes.subarray(at)]), expected);
});
