import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { createSqliteStore, isStoreRefused } from '../../../../src/adapters/store/sqlite/index.ts';
import { newFolder } from './harness.ts';

/** Only root may mount a small file system. */
const canMount = process.platform === 'linux' && process.getuid?.() === 0;

/** Opens a store on a file system of this size. Returns the error; null if there is none. */
async function openOn(kib: number): Promise<unknown> {
  const folder = newFolder();
  const { path } = folder;
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${kib}k`, 'skep-test', path]);
  try {
    await (await createSqliteStore({ dataDir: path })).close();
    return null;
  } catch (error) {
    return isStoreRefused(error) ? error.message.replace(path, 'PATH') : error;
  } finally {
    execFileSync('umount', [path]);
    folder.remove();
  }
}

test.skipIf(!canMount)('a full disk is refused, wherever in the start the space ends', async () => {
  const refusals: unknown[] = [];
  for (let kib = 32, refusal = await openOn(kib); refusal !== null; kib += 32, refusal = await openOn(kib)) refusals.push(refusal);
  expect(refusals.length).toBeGreaterThan(5);
  expect(new Set(refusals)).toEqual(new Set([
    "The data folder PATH can't be used: the disk is full. Free some space, or choose another data folder (SKEP_DATA_DIR).",
  ]));
});
