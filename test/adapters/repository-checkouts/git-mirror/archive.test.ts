import { execFileSync } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { tarEntries } from '../../../../src/adapters/sandbox-runtime/tar.ts';
import { temporaryName } from '../../../../src/adapters/shared/temporary-name.ts';
import { neverAborts } from '../../../../src/ports/abort-signals.ts';
import { createScene, noProgress, open, start } from './support.ts';

test('an archive ends right after its last file, also if that file holds only zeros', async () => {
  const long = 'n'.repeat(180);
  for (const zeros of [0, 2048, 12_000]) {
    const files = [[`deep/${long}`, 'x'.repeat(700)], ['zeros', '\0'.repeat(zeros)]] as const;
    const scene = await createScene([{ id: 'only', at: start, files }]);
    const { archive } = await scene.mirror().checkOut(scene.request, noProgress, neverAborts);
    const tar = await buffer(archive);
    const listed = execFileSync('tar', ['-t', '-v', '--exclude=.git/*'], { input: tar, encoding: 'utf8' }).trim().split('\n');
    expect(listed.map((line) => line.split(/\s+/u).at(-1))).toEqual(['.git/', 'deep/', `deep/${long}`, 'zeros']);
    expect(listed.at(-1)?.split(/\s+/u)[2]).toBe(String(zeros));
    // A header, a block of text, and the two blocks of zeros that end a tar.
    expect(tar.toString('latin1', tar.length - 2048).startsWith('.git/description\0')).toBe(true);
    expect(tar.subarray(-1024).every((byte) => byte === 0)).toBe(true);
    expect(tar[tar.length - 1536]).not.toBe(0);
  }
});

test('an archive keeps the bytes of file names that are not UTF-8, and so does the reader of archives', async () => {
  const names = ['\xFF\xFE', `\xFF${'n'.repeat(150)}`, `d\xE9ep/${'\xE9'.repeat(120)}`];
  const scene = await createScene([{ id: 'only', at: start, files: names.map((name) => [Buffer.from(name, 'latin1'), 'odd\n']) }]);
  const { archive } = await scene.mirror().checkOut(scene.request, noProgress, neverAborts);
  const tar = await buffer(archive);
  const listed = execFileSync('tar', ['-t', '--quoting-style=literal', '--exclude=.git'], { input: tar });
  expect(listed.toString('latin1').split('\n').filter((name) => /[^/]$/u.test(name)).toSorted()).toEqual(names.toSorted());
  const read: string[] = [];
  for await (const entry of tarEntries(ReadableStream.from([new Uint8Array(tar)]), neverAborts)) {
    if (entry.kind !== 'file') continue;
    for await (const _ of entry.content);
    if (entry.parts[0] !== '.git') read.push(entry.parts.join('/'));
  }
  expect(read.toSorted()).toEqual(names.toSorted());
});

test.each([['of a branch', undefined], ['of an empty repository', []]])(
  'git in a work tree %s ignores temporary files of a killed server, and the folders of others', async (_, commits) => {
    const scene = await createScene(commits);
    const { folder, git } = await open(scene.mirror(), { ...scene.request, foldersOfOthers: 'conv-[0-9]' });
    const ignored = [temporaryName(), `folder/${temporaryName()}`, 'conv-1/file'];
    const added = ['.skep-notes', 'conv-a/file', 'folder/conv-1/file'];
    for (const path of [...ignored, ...added]) {
      await mkdir(dirname(join(folder, path)), { recursive: true });
      await writeFile(join(folder, path), 'content');
    }
    await git('add', '-A');
    expect((await git('diff', '--cached', '--name-only')).split('\n')).toEqual(added);
  },
);
