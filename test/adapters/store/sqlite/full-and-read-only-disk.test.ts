import { execFileSync } from 'node:child_process';
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { unlimited } from '../../../../src/domain/admission-limits.ts';
import { backupSqlite, createSqliteStore, isStoreRefused, restoreSqlite, type StoreWarning } from '../../../../src/adapters/store/sqlite/index.ts';
import type { Store } from '../../../../src/ports/store.ts';
import { nextVersion, someConversation, someEvent, someMessage, someSandbox, someTime } from '../../../contracts/records.ts';
import { newFolder } from './harness.ts';

/** Only root may mount a small file system. */
const canMount = process.platform === 'linux' && process.getuid?.() === 0;

/** Calls `use` with the path of a file system of this size. */
async function withDisk<T>(kib: number, use: (path: string) => Promise<T>): Promise<T> {
  const folder = newFolder();
  const { path } = folder;
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${kib}k`, 'skep-test', path]);
  try {
    return await use(path);
  } finally {
    execFileSync('umount', [path]);
    folder.remove();
  }
}

/** Opens a store on a file system of this size. Returns the error; null if there is none. */
const openOn = async (kib: number): Promise<unknown> => await withDisk(kib, async (path) => {
  try {
    await (await createSqliteStore({ dataDir: path })).close();
    return null;
  } catch (error) {
    return isStoreRefused(error) ? error.message.replace(path, 'PATH') : error;
  }
});

test.skipIf(!canMount)('a store does not start on a full disk, at whatever step the space ends', async () => {
  const refusals: unknown[] = [];
  for (let kib = 32, refusal = await openOn(kib); refusal !== null; kib += 32, refusal = await openOn(kib)) refusals.push(refusal);
  expect(refusals.length).toBeGreaterThan(5);
  expect(new Set(refusals)).toEqual(new Set([
    "The data folder PATH can't be used: The disk is full. Free some space, or choose another data folder (SKEP_DATA_DIR).",
  ]));
});

test.skipIf(!canMount)('a store does not start on a read-only disk', async () => {
  await withDisk(4096, async (path) => {
    await (await createSqliteStore({ dataDir: path })).close();
    execFileSync('mount', ['-o', 'remount,ro', path]);
    const advice = 'Make it writable for this user, or choose another data folder (SKEP_DATA_DIR).';
    for (const [dataDir, why] of [[path, 'The database file could not be opened.'], [join(path, 'new'), 'The file system is read-only.']] as const) {
      await expect(createSqliteStore({ dataDir })).rejects.toThrow(`The data folder ${dataDir} can't be used: ${why} ${advice}`);
    }
  });
});

test.skipIf(!canMount)('a restore into a full or read-only data folder blames the folder, and changes nothing', async () => {
  const other = newFolder();
  try {
    const [source, file] = [join(other.path, 'data'), join(other.path, 'backup.db')];
    const store = await createSqliteStore({ dataDir: source });
    await store.conversations.insert(someConversation('big', { queue: [someMessage('m', 'x'.repeat(1_000_000))] }));
    await backupSqlite({ dataDir: source, file, runtime: null, warn: () => {} });
    await store.close();
    await withDisk(1024, async (path) => {
      await (await createSqliteStore({ dataDir: path })).close();
      const before = readdirSync(path);
      const refusal = (why: string): string =>
        `The data folder ${path} can't be used: ${why}, or choose another data folder (SKEP_DATA_DIR). Nothing was changed.`;
      const restore = restoreSqlite({ dataDir: path, file, deploymentId: null, now: 0 });
      await expect(restore).rejects.toThrow(refusal('The disk is full. Free some space'));
      execFileSync('mount', ['-o', 'remount,ro', path]);
      const again = restoreSqlite({ dataDir: path, file, deploymentId: null, now: 0 });
      await expect(again).rejects.toThrow(refusal('The file system is read-only. Make it writable for this user'));
      expect(readdirSync(path)).toEqual(before);
    });
  } finally {
    other.remove();
  }
});

/** Fills the disk. Returns a function that frees the space again. */
function fillDisk(path: string): () => void {
  const ballast = join(path, 'ballast');
  execFileSync('sh', ['-c', 'cat /dev/zero >"$1" 2>/dev/null || :', 'fill', ballast]);
  return () => rmSync(ballast);
}

/** Writes until the store has used the space of its log. */
async function useUpLog(store: Store): Promise<void> {
  for (let more = 0; more < 5000 && (await store.check()).ok; more += 1);
}

test.skipIf(!canMount)('a store on a disk that has become full is not ready until there is space again', async () => {
  await withDisk(4096, async (path) => {
    const store = await createSqliteStore({ dataDir: path });
    try {
      const free = fillDisk(path);
      await useUpLog(store);
      expect(await store.check()).toEqual({ ok: false, detail: expect.stringMatching(/disk is full/u) });
      free();
      expect(await store.check()).toMatchObject({ ok: true });
    } finally {
      await store.close();
    }
  });
});

test.skipIf(!canMount)('a store on a disk that has become full still records a hundred deletions', async () => {
  await withDisk(64 * 1024, async (path) => {
    const store = await createSqliteStore({ dataDir: path });
    try {
      const ids = Array.from({ length: 100 }, (_, n) => `s${n}`);
      for (const id of ids) await store.sandboxes.insert(someSandbox(id), unlimited);
      // The log is nearly at the size at which it is merged, which needs space for a larger database.
      const text = 'x'.repeat(100_000);
      for (let n = 0; n < 24; n += 1) await store.conversations.insert(someConversation(`c${n}`, { queue: [someMessage('m', text)] }));
      fillDisk(path);
      for (const id of ids) {
        const deleted = nextVersion(someSandbox(id), { deletedAt: someTime });
        const told = someEvent(id, { conversationId: null, sandboxId: id });
        expect(await store.sandboxes.replace(deleted, [told])).toMatchObject({ kind: 'replaced' });
        expect(await store.sandboxes.replace(nextVersion(deleted, { removedAt: someTime }))).toMatchObject({ kind: 'replaced' });
      }
    } finally {
      await store.close();
    }
  });
});

test.skipIf(!canMount).each([0, 100_000])('a store that is closed on a full disk counts as closed (%i new bytes)', async (length) => {
  await withDisk(4096, async (path) => {
    const warnings: StoreWarning[] = [];
    const store = await createSqliteStore({ dataDir: path });
    await store.conversations.insert(someConversation('kept', { queue: [someMessage('m', 'x'.repeat(length))] }));
    const free = fillDisk(path);
    await useUpLog(store);
    await store.close();
    free();
    const again = await createSqliteStore({ dataDir: path, warn: (warning) => warnings.push(warning) });
    expect(await again.conversations.find('kept')).not.toBeNull();
    await again.close();
    expect(warnings).toEqual([]);
  });
});
