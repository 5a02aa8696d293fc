import { setTimeout } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { createSqliteStore } from '../../../../src/adapters/store/sqlite/index.ts';
import type { Event } from '../../../../src/domain/event.ts';
import { unlimited } from '../../../../src/domain/admission-limits.ts';
import { somePooled, someSandbox } from '../../../contracts/records.ts';
import { textsOf } from '../../../contracts/store.ts';
import { eachFolder, startChild } from './processes.ts';

const noRoom = { ...unlimited, runningPerOwner: 0, running: 0 };

let folder: string;
eachFolder((path) => void (folder = path));

/** Opens the store and returns the ids whose records, claim or event are not in it. */
async function lostOf(ids: readonly string[]): Promise<readonly string[]> {
  const store = await createSqliteStore({ dataDir: folder });
  const lost: string[] = [];
  for (const id of ids) {
    const [sandbox, conversation] = [await store.sandboxes.find(id), await store.conversations.find(id)];
    const claim = await store.sandboxes.insert(someSandbox('another'), noRoom, { ownerId: 'ann', key: id, fingerprint: id });
    const told = await store.events.read({ ownerId: 'ann', conversationId: id }, 0, 9);
    const isKept = sandbox?.version === 2 && conversation !== null && claim.kind === 'repeated' && claim.id === id && told.length === 1;
    if (!isKept) lost.push(id);
  }
  await store.close();
  return lost;
}

describe('A server that is killed ten times', () => {
  test('loses no write that had succeeded', async () => {
    const acknowledged: string[] = [];
    for (let round = 0; round < 10; round += 1) {
      const writer = startChild('write', folder, `r${round}`);
      await writer.said(1 + round * 12);
      await writer.kill();
      acknowledged.push(...writer.lines);
      expect(await lostOf(writer.lines)).toEqual([]);
    }
    expect(await lostOf(acknowledged)).toEqual([]);
    expect(acknowledged.length).toBeGreaterThan(500);
  });
});

describe('Several processes with one store', () => {
  test('exceed no limit, replace each version once and claim each pool member once', async () => {
    const store = await createSqliteStore({ dataDir: folder });
    await store.sandboxes.insert(someSandbox('shared', { ownerId: 'bob' }), unlimited);
    for (let n = 0; n < 50; n += 1) await store.sandboxes.insertPooled(somePooled(`p${n}`), 'f', 50);
    const racers = ['a', 'b', 'c', 'd'].map((tag) => startChild('race', folder, tag));
    await Promise.all(racers.map((racer) => racer.said(1)));
    for (const racer of racers) racer.tell('go');
    let writing = true;
    const ended = Promise.all(racers.map((racer) => racer.ended())).finally(() => {
      writing = false;
    });
    const seen: Event[] = [];
    for (let last = false; ; ) {
      const next = await store.events.read({ ownerId: 'ann' }, seen.at(-1)?.sequence ?? 0, 7);
      seen.push(...next);
      if (next.length > 0) continue;
      if (last) break;
      last = !writing;
      await setTimeout(5);
    }
    await ended;
    for (const tag of ['a', 'b', 'c', 'd']) {
      const own = textsOf(seen).filter((text) => text.startsWith(tag));
      expect(own).toEqual(Array.from({ length: 50 }, (_, n) => `${tag}-${n}`));
    }

    const won = racers.map(({ lines }) => (lines[1] ?? '').split(' ').map(Number));
    expect(sum(won.map(([admitted = 0]) => admitted))).toBe(37);
    const all = await store.sandboxes.scan(null, 1000);
    expect(all.filter(({ ownerId }) => ownerId === 'ann').length).toBe(37);
    const version = all.find(({ id }) => id === 'shared')?.version ?? 0;
    expect(version).toBeGreaterThan(200);
    expect(sum(won.map(([, replaced = 0]) => replaced))).toBe(version - 1);
    const handed = all.filter(({ ownerId }) => ownerId === 'cyd');
    expect(sum(won.map(([, , taken = 0]) => taken))).toBe(50);
    expect(new Set(handed.map(({ instanceId }) => instanceId)).size).toBe(50);
    expect(await store.sandboxes.pooled()).toEqual([]);
    const told = await store.events.read({ ownerId: 'cyd' }, 0, 1000);
    expect(textsOf(told).toSorted()).toEqual(handed.map(({ id }) => id).toSorted());
    await store.close();
  });
});

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
