import { execFileSync } from 'node:child_process';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { describe, expect, test } from 'vitest';
import { untilTarEnd } from '../../../../src/adapters/repository-checkouts/git-mirror/work-tree-archive.ts';
import { createScene, never, start, temporaryFolder, noProgress } from './support.ts';

async function* inChunks(tar: Buffer, bytes: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < tar.length; at += bytes) yield tar.subarray(at, at + bytes);
}

describe('the end of a tar', () => {
  test('is found wherever the chunks begin, also after a file of nothing but zeros', async () => {
    const folder = await temporaryFolder();
    const long = 'n'.repeat(180);
    await mkdir(join(folder, 'deep'));
    await writeFile(join(folder, 'deep', long), 'x'.repeat(700));
    await writeFile(join(folder, 'zeros'), Buffer.alloc(2048));
    await symlink('x'.repeat(150), join(folder, 'far'));
    const tar = execFileSync('tar', ['-c', '--format=pax', '-C', folder, 'deep', 'far', 'zeros']);
    expect(tar.length % 10_240).toBe(0);
    const ends: Buffer[] = [];
    for (const bytes of [1, 7, 511, 512, 513, 1000, 10_240, tar.length]) {
      const chunks: Buffer[] = [];
      for await (const chunk of untilTarEnd(inChunks(tar, bytes))) chunks.push(chunk);
      ends.push(Buffer.concat(chunks));
    }
    const [first = Buffer.alloc(0)] = ends;
    for (const end of ends) expect(end.equals(first)).toBe(true);
    expect(tar.subarray(0, first.length).equals(first)).toBe(true);
    expect(tar.subarray(first.length).every((byte) => byte === 0)).toBe(true);
    const names = execFileSync('tar', ['-t'], { input: first, encoding: 'utf8' });
    expect(names.trim().split('\n')).toEqual(['deep/', `deep/${long}`, 'far', 'zeros']);
    // The header of the zeros, they themselves, and the end.
    expect(first.subarray(-1024 - 2048 - 512).toString('latin1', 0, 5)).toBe('zeros');
  });
});

test('names that are not UTF-8 are kept byte by byte', async () => {
  const name = Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from('n'.repeat(150))]);
  const scene = await createScene([{ id: 'only', at: start, files: [[name, 'odd\n']] }]);
  const { archive } = await scene.mirror().checkOut(scene.request, noProgress, never);
  const listed = execFileSync('tar', ['-t', '--quoting-style=literal', '--exclude=.git'], { input: await buffer(archive) });
  expect(listed.toString('latin1')).toBe(`${name.toString('latin1')}\n`);
});
