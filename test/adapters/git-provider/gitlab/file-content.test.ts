import { expect, test } from 'vitest';
import { agents, everything, failureOf, simple } from '../support.ts';
import { hostOf, providerOf } from './support.ts';

const file = `${agents}/a.md`;

test('readFile() takes one request, also for 100 callers at once', async () => {
  const host = await hostOf();
  await host.publish(simple);
  const provider = providerOf(host);
  const { files: [found] } = await provider.listFiles('acme/shop', everything);
  host.counts();
  const contents = await Promise.all(Array.from({ length: 100 }, () => provider.readFile('acme/shop', found!, 100)));
  expect(new Set(contents.map(String)).size).toBe(1);
  expect(host.counts()).toEqual({ blob: 1 });
  expect(await failureOf(provider.readFile('acme/shop', { path: file, blobId: '0'.repeat(40) }, 100))).toMatch(/^file_not_found: /u);
  expect(host.counts()).toEqual({ blob: 1 });
  expect(await failureOf(provider.readFile('acme/shop', { path: file, blobId: '../tree' }, 100))).toMatch(/^file_not_found: /u);
  expect(host.counts()).toEqual({});
});
