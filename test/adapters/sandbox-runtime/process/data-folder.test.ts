import * as fs from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { createLayout, sizeOfFiles } from '../../../../src/adapters/sandbox-runtime/process/data-folder.ts';

function fail(code: string): Promise<never> {
  return Promise.reject(Object.assign(new Error(code), { code }));
}

/** A directory `locked` can't be listed, `mount` is on another device, and the name of any other one with a mishap is its error. */
vi.mock(import('node:fs/promises'), async (original) => {
  const real = await original();
  const lstat = async (path: string | Buffer) => {
    const name = basename(String(path));
    const found = await real.lstat(path);
    if (name.startsWith('E')) return await fail(name);
    return name === 'mount' ? Object.assign(found, { dev: found.dev + 1 }) : found;
  };
  const readdir = (path: string | Buffer, options: 'buffer') => basename(String(path)) === 'locked' ? fail('EACCES') : real.readdir(path, options);
  return { ...real, lstat: lstat as typeof real.lstat, readdir: readdir as typeof real.readdir };
});

test('the size counts nothing that can not be read, and no other file system', async () => {
  const root = await fs.mkdtemp(join(tmpdir(), 'skep-'));
  onTestFinished(() => fs.rm(root, { recursive: true }));
  const layout = createLayout(root);
  const { workspace } = layout.sandbox('one');
  await fs.mkdir(workspace, { recursive: true });
  const addFolder = async (name: string) => {
    await fs.mkdir(join(workspace, name));
    await fs.writeFile(join(workspace, name, 'file'), Buffer.alloc(1 << 20, 1), { flush: true });
  };
  await addFolder('counted');
  const before = Number(await sizeOfFiles(layout, 'one'));
  expect(before).toBeGreaterThanOrEqual(1 << 20);
  for (const name of ['locked', 'mount', 'EACCES', 'EPERM', 'ENOTCONN', 'ESTALE', 'EIO']) await addFolder(name);
  expect(Number(await sizeOfFiles(layout, 'one')) - before).toBeLessThan(1 << 20);
  await addFolder('EMFILE');
  await expect(sizeOfFiles(layout, 'one')).rejects.toThrow('EMFILE');
});
