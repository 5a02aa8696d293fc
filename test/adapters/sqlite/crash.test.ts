import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createSqliteStore } from '../../../src/adapters/sqlite/index.ts';
import { someSandbox } from '../../contracts/records.ts';
import { newFolder } from './harness.ts';
import { endChildren, startChild } from './processes.ts';

const noRoom = { runningPerOwner: 0, running: 0 };

let folder: ReturnType<typeof newFolder>;

beforeEach(() => {
  folder = newFolder();
});

afterEach(async () => {
  await endChildren();
  folder.remove();
});

describe('a process that is killed', () => {
  test('loses nothing that it was answered for, again and again', async () => {
    const acknowledged: string[] = [];
    for (let round = 0; round < 10; round += 1) {
      const writer = startChild('write', folder.path, `r${round}`);
      await writer.said(1 + round * 12);
      await writer.kill();
      acknowledged.push(...writer.lines);

      const store = await createSqliteStore({ dataDir: folder.path });
      const lost: string[] = [];
      for (const id of acknowledged) {
        const [sandbox, conversation] = [await store.sandboxes.find(id), await store.conversations.find(id)];
        const claim = await store.sandboxes.insert(someSandbox('another'), noRoom, { ownerId: 'ann', key: id, fingerprint: id });
        if (sandbox?.generation !== 2 || conversation === null || claim.kind !== 'repeated' || claim.id !== id) lost.push(id);
      }
      expect(lost).toEqual([]);
      await store.close();
    }
    expect(acknowledged.length).toBeGreaterThan(500);
  }, 120_000);
});

describe('several processes over one store', () => {
  test('exceed no limit and replace each generation once', async () => {
    const store = await createSqliteStore({ dataDir: folder.path });
    await store.sandboxes.insert(someSandbox('shared', { ownerId: 'bob' }), { runningPerOwner: null, running: null });
    const racers = ['a', 'b', 'c', 'd'].map((tag) => startChild('race', folder.path, tag));
    await Promise.all(racers.map((racer) => racer.said(1)));
    for (const racer of racers) racer.tell('go');
    await Promise.all(racers.map((racer) => racer.ended()));

    const won = racers.map(({ lines }) => (lines[1] ?? '').split(' ').map(Number));
    expect(sum(won.map(([admitted = 0]) => admitted))).toBe(37);
    const all = await store.sandboxes.scan(null, 1000);
    expect(all.filter(({ ownerId }) => ownerId === 'ann').length).toBe(37);
    const generation = all.find(({ id }) => id === 'shared')?.generation ?? 0;
    expect(generation).toBeGreaterThan(200);
    expect(sum(won.map(([, replaced = 0]) => replaced))).toBe(generation - 1);
    await store.close();
  }, 60_000);
});

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
