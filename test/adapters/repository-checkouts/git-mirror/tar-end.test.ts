import { execFileSync } from 'node:child_process';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { untilTarEnd } from '../../../../src/adapters/repository-checkouts/git-mirror/archive-stream.ts';
import { tarHeader, tarPadding } from '../../../../src/adapters/repository-checkouts/git-mirror/work-tree-archive.ts';
import { temporaryFolder } from './support.ts';

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

  test('headers are such as tar reads, also of sizes beyond eleven octal digits', () => {
    const entry = { name: '.git/index', kind: 'file', mode: 0o644, size: 3, mtime: 1_600_000_000 } as const;
    const tar = Buffer.concat([tarHeader(entry), Buffer.from('abc'), tarPadding(3), Buffer.alloc(1024)]);
    const listed = execFileSync('tar', ['-tv', '--utc', '--full-time'], { input: tar, encoding: 'utf8' });
    expect(listed).toMatch(/^-rw-r--r-- 0\/0 +3 2020-09-13 12:26:40 \.git\/index\n$/u);
    const huge = tarHeader({ ...entry, size: 10 ** 12 });
    expect(huge.readBigUInt64BE(128)).toBe(10n ** 12n);
    expect(huge[124]).toBe(0x80);
  });
});
