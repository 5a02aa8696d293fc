import { mkdir, mkdtemp, readdir, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { unpackBelow } from '../../../../src/adapters/sandbox-runtime/process/archives.ts';
import { tarEntries } from '../../../../src/adapters/sandbox-runtime/tar.ts';
import { tarEnd, tarEntry } from '../../../../src/adapters/shared/packed-tar.ts';
import { never } from '../../../contracts/sandbox-runtime-harness.ts';

async function* archive(): AsyncGenerator<Uint8Array> {
  yield* tarEntry({ name: Buffer.from('\xE9/file', 'latin1'), type: 'file' });
  yield tarEnd;
}

test.runIf(process.platform === 'linux')('a folder whose name is not UTF-8 is not another one with U+FFFD', async () => {
  const top = await mkdtemp(join(tmpdir(), 'skep-archives-'));
  onTestFinished(() => rm(top, { recursive: true }));
  for (const name of ['outside', 'workspace']) await mkdir(join(top, name));
  await symlink('../outside', join(top, 'workspace/\uFFFD'));

  await unpackBelow(join(top, 'workspace'), tarEntries(ReadableStream.from(archive()), never));
  expect(await readdir(join(top, 'outside'))).toEqual([]);
  const folder = Buffer.concat([Buffer.from(join(top, 'workspace/')), Buffer.from([0xe9])]);
  expect(await readdir(folder)).toEqual(['file']);
});
