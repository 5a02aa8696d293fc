import { expect, test } from 'vitest';
import { createHttpServer } from '../../../src/adapters/http/index.ts';
import { createManualClock, createMemoryGitProvider, createMemoryRuntime } from '../../doubles/memory/index.ts';
import { createSkep } from '../../../src/composition/create-skep.ts';
import type { GitProvider } from '../../../src/ports/git-provider.ts';
import { createClient } from '../../support/client.ts';
import { repository } from './world.ts';

test('responses from a stale listing have its age in the header Age, and responses from a fresh listing have no such header', async () => {
  const clock = createManualClock();
  const memory = createMemoryGitProvider({ repositories: [repository] });
  let confirmedAt: number | undefined;
  const git: GitProvider = {
    ...memory,
    listFiles: async (...asked) => ({ ...(await memory.listFiles(...asked)), ...(confirmedAt !== undefined && { confirmedAt }) }),
  };
  const key = 'a-static-key-of-mine';
  await using open = new AsyncDisposableStack();
  const skep = await createSkep({ git: [git], runtime: createMemoryRuntime(), clock, auth: { kind: 'api-keys', staticKey: key } });
  open.defer(() => skep.close());
  const server = await createHttpServer(skep, { port: 0 });
  open.defer(() => server.close());
  const list = () => createClient(server.url, key)('GET', '/api/user/repository/acme/shop/microagents');

  expect([(await list()).status, (await list()).headers.get('age')]).toEqual([200, null]);
  confirmedAt = clock.now();
  clock.advance(90_000);
  const stale = await list();
  const read = await createClient(server.url, key)('GET', '/api/user/repository/acme/shop/microagents/content?file_path=.skep/microagents/deploy/aws.md');
  expect([read.status, read.headers.get('age')]).toEqual([200, '90']);
  expect([stale.status, stale.headers.get('age'), stale.body]).toEqual([200, '90', [expect.objectContaining({ name: 'deploy/aws' })]]);
});
