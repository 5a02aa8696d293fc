import { expect, test } from 'vitest';
import { createInMemoryStore } from '../../src/adapters/store/sqlite/index.ts';
import { PoolMembers } from '../../src/application/sandboxes/sandbox-pool.ts';
import { newPoolMember } from '../../src/domain/pool-plan.ts';
import { sandboxSpec } from '../../src/domain/sandbox-spec.ts';
import type { SandboxStatus } from '../../src/domain/sandbox.ts';

const spec = sandboxSpec({ id: 'warm', pool: { size: 9 } });

async function known(...added: readonly (readonly [id: string, fingerprint: string, status: SandboxStatus])[]) {
  const store = createInMemoryStore().sandboxes;
  for (const [index, [id, fingerprint, status]] of added.entries()) {
    await store.insertPooled({ ...newPoolMember({ id, spec, sessionApiKey: 'k', now: index }), status }, fingerprint, 9);
  }
  const members = new PoolMembers(store);
  const take = async (fingerprint = 'f') => await members.take(fingerprint);
  const again = async () => members.learn(await store.pooled());
  return { members, take, again };
}

const idOf = (member: Awaited<ReturnType<PoolMembers['take']>>) => member?.sandbox.id ?? null;

test('a member is tried by one at a time, also where the members are read again meanwhile', async () => {
  const { members, take, again } = await known(['a', 'f', 'RUNNING'], ['b', 'f', 'RUNNING']);
  const first = await take();
  await again();
  const second = await take();
  await again();
  expect([idOf(first), idOf(second), idOf(await take())]).toEqual(['a', 'b', null]);
  if (first !== null) members.giveBack(first);
  expect(idOf(await take())).toBe('a');
});

test('of those who ask at once each gets another', async () => {
  const { take } = await known(['a', 'f', 'RUNNING'], ['b', 'f', 'RUNNING']);
  const ids = (await Promise.all([take(), take(), take()])).map(idOf);
  expect(new Set(ids)).toEqual(new Set(['a', 'b', null]));
});

test('only what runs, of the content that is asked for, is tried', async () => {
  const { take } = await known(['a', 'other', 'RUNNING'], ['b', 'f', 'STARTING'], ['c', 'f', 'ERROR']);
  expect([idOf(await take()), idOf(await take('other'))]).toEqual([null, 'a']);
});
