import { afterEach, expect, test } from 'vitest';
import { createSqliteStore } from '../../../../src/adapters/store/sqlite/index.ts';
import { unlimited } from '../../../../src/domain/sandbox-limits.ts';
import { newSandbox } from '../../../../src/domain/sandbox.ts';
import { sandboxSpec } from '../../../../src/domain/sandbox-spec.ts';
import type { Store } from '../../../../src/ports/store.ts';
import { removeFolder, temporaryFolder } from '../../../support/server.ts';

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
});

async function stores(): Promise<readonly [Store, Store]> {
  const dataDir = await temporaryFolder();
  closers.push(() => removeFolder(dataDir));
  const server = await createSqliteStore({ dataDir });
  closers.push(() => server.close());
  const visitor = await createSqliteStore({ dataDir, exclusive: false });
  closers.push(() => visitor.close());
  return [server, visitor];
}

const all = { after: null, limit: 100 };
const sandbox = (id: string) => newSandbox({ id, ownerId: 'ann', spec: sandboxSpec({ id: 'plain' }), sessionApiKey: 'a key', now: 1 });

async function idsIn(store: Store): Promise<string[]> {
  return (await store.sandboxes.search('ann', {}, all)).items.map(({ id }) => id);
}

test('a page that was read before tells what holds now, whichever connection wrote', async () => {
  const [one, other] = await stores();
  for (const [index, writer] of [one, other, one, other].entries()) {
    const before = await idsIn(one);
    expect(await idsIn(one)).toEqual(before);
    await writer.sandboxes.insert(sandbox(`sb-${index}`), unlimited);
    expect(await idsIn(one)).toEqual([`sb-${index}`, ...before]);
    expect(await idsIn(other)).toEqual([`sb-${index}`, ...before]);
  }
  for (const writer of [one, other]) {
    const { lastActiveAt } = (await one.sandboxes.search('ann', {}, all)).items[0] ?? sandbox('none');
    await writer.sandboxes.touch('sb-3', lastActiveAt + 5);
    expect((await one.sandboxes.search('ann', {}, all)).items[0]?.lastActiveAt).toBe(lastActiveAt + 5);
  }
});

test('pages are told apart by their owner, their filter, their place and their length', async () => {
  const [store] = await stores();
  for (const id of ['sb-1', 'sb-2']) await store.sandboxes.insert(sandbox(id), unlimited);
  const count = async (...args: Parameters<Store['sandboxes']['search']>) => (await store.sandboxes.search(...args)).items.length;
  expect(await count('ann', {}, all)).toBe(2);
  expect(await count('ben', {}, all)).toBe(0);
  expect(await count('ann', { status: 'RUNNING' }, all)).toBe(0);
  expect(await count('ann', { specId: 'other' }, all)).toBe(0);
  expect(await count('ann', {}, { after: null, limit: 1 })).toBe(1);
  expect(await count('ann', {}, { after: { value: 1, id: 'sb-2' }, limit: 100 })).toBe(1);
});
