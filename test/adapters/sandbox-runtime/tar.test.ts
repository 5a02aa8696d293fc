import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, mkdirSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { describe, test } from 'vitest';
import { isFailureOf } from '../../../src/domain/failure.ts';
import { tarEntries, type TarEntry, textOf } from '../../../src/adapters/sandbox-runtime/tar.ts';
import { neverAborts } from '../../../src/ports/abort-signals.ts';
import { tarOf } from '../../contracts/sandbox-runtime-streams.ts';

/** The names of the entries, and the number of bytes in them. */
async function read(
  archive: ReadableStream<Uint8Array>,
  signal = neverAborts,
  use: (entry: TarEntry) => void = () => {},
): Promise<{ names: string[]; bytes: number }> {
  const names: string[] = [];
  let bytes = 0;
  for await (const entry of tarEntries(archive, signal)) {
    use(entry);
    names.push(textOf(entry.parts));
    if (entry.kind === 'file') for await (const chunk of entry.content) bytes += chunk.byteLength;
  }
  return { names, bytes };
}

function inChunks(bytes: Uint8Array, size: number): ReadableStream<Uint8Array> {
  return ReadableStream.from(
    (async function* () {
      for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
    })(),
  );
}

const isRefused = (error: unknown): boolean => isFailureOf(error, 'invalid_request');

describe('A tar archive made by GNU tar', () => {
  test.each(['gnu', 'pax'])('is read completely in the %s format, with any chunk size', async (format) => {
    const folder = mkdtempSync(join(tmpdir(), 'skep-tar-'));
    try {
      const long = join('d'.repeat(90), 'e'.repeat(90));
      mkdirSync(join(folder, long), { recursive: true });
      const name = join(long, `${'f'.repeat(60)}ü`);
      writeFileSync(join(folder, name), Buffer.alloc(3_000, 1));
      writeFileSync(join(folder, 'empty'), '');
      symlinkSync('g'.repeat(90), join(folder, 'link'));
      const tar = execFileSync('tar', ['-C', folder, `--format=${format}`, '-c', '.'], { maxBuffer: 1 << 24 });
      for (const size of [1, 511, 512, 10_000, tar.length]) {
        const { names, bytes } = await read(inChunks(tar, size));
        assert.deepEqual(names.toSorted(), ['', 'd'.repeat(90), 'empty', 'link', long, name].toSorted());
        assert.equal(bytes, 3_000);
      }
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test.each(['gnu', 'pax'])('keeps names and targets that are not UTF-8, in the %s format', async (format) => {
    const folder = mkdtempSync(join(tmpdir(), 'skep-tar-'));
    try {
      const names = ['caf\xE9', 'l\xF6ng'.repeat(40), Buffer.from('\uFFFD').toString('latin1')];
      for (const name of names) symlinkSync(Buffer.from(name, 'latin1'), Buffer.from(`${folder}/${name}`, 'latin1'));
      const tar = execFileSync('tar', ['-C', folder, `--format=${format}`, '-c', '.'], { maxBuffer: 1 << 24 });
      const targets = new Map<string, string>();
      await read(inChunks(tar, 512), neverAborts, (entry) => {
        if (entry.kind === 'symlink') targets.set(entry.parts.join('/'), entry.target);
      });
      assert.deepEqual(targets, new Map(names.map((name) => [name, name])));
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test.each(['gnu', 'pax'])('is refused if it has a sparse file in the %s format, and the message says how to pack it', async (format) => {
    const folder = mkdtempSync(join(tmpdir(), 'skep-tar-'));
    try {
      writeFileSync(join(folder, 'holes'), '');
      truncateSync(join(folder, 'holes'), 1 << 20);
      const tar = execFileSync('tar', ['-C', folder, `--format=${format}`, '-S', '-c', 'holes']);
      await assert.rejects(read(inChunks(tar, 512)), (error) => isRefused(error) && /holes.* is a sparse file.*without -S/u.test(String(error)));
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

describe('An invalid tar archive', () => {
  test('is refused if it is truncated', async () => {
    const whole = await buffer(tarOf([[{ name: 'a' }, Buffer.alloc(2_000)], [{ name: 'b' }, 'b']]));
    for (const size of [100, 512, 513, 1_500, 2_600]) {
      const cut = read(inChunks(whole.subarray(0, size), 300));
      if (size === 512 || size % 512 !== 0) await assert.rejects(cut, isRefused, String(size));
      else await cut;
    }
  });

  test.each([['no tar at all', new Uint8Array(4_000).fill(7)], ['a wrong checksum', null]])('is refused: %s', async (_, given) => {
    const bytes = given ?? (await buffer(tarOf([[{ name: 'a' }, 'a']])));
    if (given === null) bytes[0] = 0x62;
    await assert.rejects(read(inChunks(bytes, 512)), isRefused);
  });

  test('is refused if it contains an impossible file name', async () => {
    for (const name of ['..', 'a/..', '/', '\u00FC/..']) {
      await assert.rejects(read(tarOf([[{ name, type: 'directory' }]])), isRefused, name);
    }
  });
});

/** Returns an entry of the type with PAX records of these keys. Their lengths have two digits. */
async function recordsOf(type: 'g' | 'x', keys: readonly string[], value: string): Promise<Buffer> {
  const records = keys.map((key) => `${key.length + value.length + 5} ${key}=${value}\n`);
  const entry = (await buffer(tarOf([[{ name: 'records' }, records.join('')]]))).subarray(0, -1024);
  entry.write(type, 156, 'latin1');
  entry.fill(' ', 148, 156);
  entry.write(entry.subarray(0, 512).reduce((sum, byte) => sum + byte, 0).toString(8).padStart(6, '0'), 148, 'latin1');
  return entry;
}

describe('A tar archive with many global PAX records', () => {
  test.each([['without effect', 'KEY.'], ['of a sparse file', 'GNU.sparse.']])('is read soon: records %s', async (_, start) => {
    const file = (await buffer(tarOf([[{ name: 'file' }, '']]))).subarray(0, 512);
    const own = await recordsOf('x', ['path'], 'other name');
    const keys = Array.from({ length: 150_000 }, (_key, at) => `${start}${at.toString(36).padStart(6, '0')}`);
    const isSparse = start.startsWith('GNU');
    const archive = [await recordsOf('g', keys, ''), ...Array.from({ length: 100 }, () => (isSparse ? [own] : [own, file])).flat(), file];
    const begun = performance.now();
    const reading = read(inChunks(Buffer.concat([...archive, Buffer.alloc(1024)]), 65_536));
    if (isSparse) await assert.rejects(reading, isRefused);
    else assert.deepEqual((await reading).names, [...Array.from({ length: 100 }, () => 'other name'), 'file']);
    assert.ok(performance.now() - begun < 5_000);
  });
});

describe('A tar archive with long names', () => {
  test.each([
    ['a name', { name: 'a'.repeat(4_096) }], ['a deep name', { name: `${'a/'.repeat(255)}a` }],
    ['a target', { name: 'a', type: 'link', linkname: 'a'.repeat(4_096) }],
    ['a deep target', { name: 'a', type: 'link', linkname: `${'a/'.repeat(255)}a` }],
    ['the target of a link', { name: 'a', type: 'symlink', linkname: 'a'.repeat(4_096) }],
  ] as const)('is refused if Linux can not have it, or each part is too much work: %s', async (_, header) => {
    await assert.rejects(read(tarOf([[header, '']])), isRefused);
  });

  test('is read up to the limits', async () => {
    const names = [`${'a/'.repeat(254)}a`, `${'a'.repeat(255)}/`.repeat(15) + 'a'.repeat(255)];
    const archive = tarOf(names.map((name) => [{ name }, ''] as const));
    assert.deepEqual((await read(archive)).names, names);
    await read(tarOf([[{ name: 'a', type: 'symlink', linkname: 'a/'.repeat(2_047) }, '']]));
  });
});

describe('Reading a tar archive', () => {
  test('fails with the error of the signal, the consumer or the source, and cancels the source', async () => {
    const reason = new Error('no longer wanted');
    const controller = new AbortController();
    let cancelled = 0;
    const endless = (): ReadableStream<Uint8Array> => new ReadableStream({ cancel: () => void (cancelled += 1) });
    const hanging = read(endless(), controller.signal);
    controller.abort(reason);
    await assert.rejects(hanging, (error) => error === reason);
    await assert.rejects(read(endless(), controller.signal), (error) => error === reason);
    const used = new Error('the disk is full');
    await assert.rejects(
      read(tarOf([[{ name: 'a' }, 'a']]), neverAborts, () => {
        throw used;
      }),
      (error) => error === used,
    );
    const broken = new Error('the source broke');
    const breaking = ReadableStream.from(
      (async function* (): AsyncGenerator<Uint8Array> {
        yield (await buffer(tarOf([[{ name: 'a' }, Buffer.alloc(5_000)]]))).subarray(0, 2_000);
        throw broken;
      })(),
    );
    await assert.rejects(read(breaking), (error) => error === broken);
    assert.equal(cancelled, 2);
  });

  test('reads ahead less than 4 MiB', async () => {
    let given = 0;
    const header = (await buffer(tarOf([[{ name: 'big', size: 0 }, Buffer.alloc(0)]]))).subarray(0, 512);
    // A file of 1 GiB that nobody reads on: octal in the header, and its sum.
    header.write('10000000000\0', 124, 'latin1');
    header.fill(' ', 148, 156);
    header.write(`${header.reduce((sum, byte) => sum + byte, 0).toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
    const archive = new ReadableStream<Uint8Array>({
      pull(controller) {
        controller.enqueue(given === 0 ? header : new Uint8Array(65_536));
        given += 65_536;
      },
    });
    for await (const entry of tarEntries(archive, neverAborts)) {
      assert.ok(entry.kind === 'file');
      let used = 0;
      for await (const chunk of entry.content) {
        used += chunk.byteLength;
        assert.ok(given - used < 4 * 2 ** 20, `${given} given, ${used} used`);
        if (used > 64 * 2 ** 20) break;
      }
      break;
    }
  });
});
