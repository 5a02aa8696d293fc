import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { neverAborts } from '../../../../src/ports/abort-signals.ts';
import { take } from './snapshot-support.ts';
import { createScene, open } from './support.ts';

const odd = ['*', '?', '[ab]', '!a', ':(top)a', '\\a', 'a\\', 'ü', ' ', '-p', 'line\nbreak', 'folder/*', '**'];
const names = ['a', ...odd, 'ordinary', 'folder/ordinary'];

test('a patch of one file has only that file, whatever its name means as a pattern', async () => {
  const scene = await createScene([{ id: 'first', at: 1_600_000_000, files: names.map((name) => [name, 'old\n']) }]);
  const tree = await open(scene.mirror(), scene.request);
  for (const [at, name] of names.entries()) await writeFile(join(tree.folder, name), `content ${at}\n`);
  await using snapshot = await take(scene.mirror(), tree);
  const paths = (await snapshot.files(neverAborts)).map(({ path }) => path);
  expect(paths.toSorted()).toEqual(names.toSorted());
  for (const path of paths) {
    const patch = await text(snapshot.patch([path], neverAborts));
    expect([path, patch.match(/^diff --git /gmu)?.length, patch.match(/^\+(?!\+).*/gmu)]).toEqual([path, 1, [`+content ${names.indexOf(path)}`]]);
  }
});

test('a patch of one path has nothing of a folder that took its place, or had it', async () => {
  const scene = await createScene([{ id: 'first', at: 1_600_000_000, files: [['file', 'old\n'], ['folder/file', 'old\n'], ['moved', 'a\nb\nc\n']] }]);
  const tree = await open(scene.mirror(), scene.request);
  for (const name of ['file', 'folder', 'moved']) await rm(join(tree.folder, name), { recursive: true });
  for (const name of ['file', 'moved']) await mkdir(join(tree.folder, name));
  for (const name of ['file/below', 'folder', 'moved/other']) await writeFile(join(tree.folder, name), 'new\n');
  await writeFile(join(tree.folder, 'moved/here'), 'a\nb\nc\n');
  await using snapshot = await take(scene.mirror(), tree);
  for (const [paths, expected] of [
    [['file'], ['a/file b/file']], [['file/below'], ['a/file/below b/file/below']], [['folder'], ['a/folder b/folder']],
    [['moved', 'moved/here'], ['a/moved b/moved/here']],
  ] as const) {
    const patch = await text(snapshot.patch(paths, neverAborts));
    expect([...patch.matchAll(/^diff --git (.*)$/gmu)].map(([, names]) => names)).toEqual(expected);
  }
});

test('a patch has all its paths, also if one is in a folder that has the name of the pattern of another', async () => {
  const scene = await createScene([{ id: 'first', at: 1_600_000_000, files: [['\\a/x', 'old\n']] }]);
  const tree = await open(scene.mirror(), scene.request);
  await rm(join(tree.folder, '\\a'), { recursive: true });
  await writeFile(join(tree.folder, 'a'), 'old\n');
  await using snapshot = await take(scene.mirror(), tree);
  const patch = await text(snapshot.patch(['\\a/x', 'a'], neverAborts));
  expect(patch).toContain('rename from "\\\\a/x"\nrename to a\n');
});
