import { describe, expect, test } from 'vitest';
import { createMemoryListingCache } from '../../../../src/adapters/git-provider/incremental-listing.ts';
import type { CommitDescription } from '../../../contracts/git-repository.ts';
import { agents, everything, failureOf, list, pairs, simple, simpleListing, start } from '../support.ts';
import { hostOf, manyFiles, providerOf } from './support.ts';

const file = `${agents}/a.md`;

describe('a listing costs the pages of the tree, and a request for each file', () => {
  test('two files', async () => {
    const host = await hostOf();
    await host.publish(simple);
    expect(await list(providerOf(host))).toEqual(simpleListing);
    expect(host.counts()).toEqual({ commit: 1, tree: 1, commits: 2 });
  });

  test('only for those that are wanted', async () => {
    const host = await hostOf();
    await host.publish(simple);
    const provider = providerOf(host);
    const some = { ...everything, accepts: (path: string) => path === 'a.md' };
    expect(pairs(await provider.listFiles('acme/shop', some))).toEqual(simpleListing.slice(0, 1));
    expect(host.counts()).toEqual({ commit: 1, tree: 1, commits: 1 });
    expect(await list(provider)).toEqual(simpleListing);
    expect(host.counts()).toEqual({ commit: 1, commits: 1 });
  });

  test('several pages, and no more at a time than is allowed', async () => {
    const host = await hostOf();
    await host.publish(manyFiles(250));
    host.delayMs = 5;
    const listing = await list(providerOf(host, { concurrency: 3 }));
    expect(listing).toHaveLength(250);
    expect(listing[249]).toEqual([`${agents}/0249.md`, start + 249]);
    expect(host.counts()).toEqual({ commit: 1, tree: 3, commits: 250 });
    expect(Math.max(...host.requests.map(({ others }) => others))).toBe(2);
    expect(host.requests.filter(({ route }) => route !== 'commit').every(({ query }) => query['per_page'] === '100')).toBe(true);
  });

  test('a missing directory, and an empty repository', async () => {
    const host = await hostOf();
    await host.publish([{ id: 'other', at: start, files: [['x', '1']] }]);
    await host.publish([], 'acme/empty');
    const provider = providerOf(host);
    expect(await list(provider)).toEqual([]);
    expect(host.counts()).toEqual({ commit: 1, tree: 1 });
    expect(await list(provider, 'acme/empty')).toEqual([]);
    expect(host.counts()).toEqual({ commit: 1, project: 1 });
  });

  test.each([
    [99, 1],
    [101, 2],
    [250, 4],
    [1050, 10],
  ])('a file with %i commits costs %i requests', async (count, requests) => {
    const host = await hostOf();
    const changes = Array.from({ length: count }, (_, index) => ({ id: `c${index}`, at: start + index, files: [[file, String(index)] as const] }));
    await host.publish(changes);
    expect(await list(providerOf(host))).toEqual([[file, start]]);
    const { commits = 0 } = host.counts();
    expect(commits).toBeLessThanOrEqual(requests);
    expect(commits > 1).toBe(count > 100);
  });
});

describe('what is known is not asked for again', () => {
  test('unchanged: one request, also after a restart', async () => {
    const host = await hostOf();
    await host.publish(simple);
    const listingCache = createMemoryListingCache();
    const provider = providerOf(host, { listingCache });
    await list(provider);
    host.counts();
    expect(await list(provider)).toEqual(simpleListing);
    expect(host.counts()).toEqual({ commit: 1 });
    await provider.close();
    expect(await list(providerOf(host, { listingCache }))).toEqual(simpleListing);
    expect(host.counts()).toEqual({ commit: 1 });
  });

  test('a hundred equal requests at once cost one', async () => {
    const host = await hostOf();
    await host.publish(simple);
    const provider = providerOf(host);
    const listings = await Promise.all(Array.from({ length: 100 }, () => list(provider)));
    for (const listing of listings) expect(listing).toEqual(simpleListing);
    expect(host.counts()).toEqual({ commit: 1, tree: 1, commits: 2 });
    await Promise.all(Array.from({ length: 100 }, () => provider.find('acme/shop')));
    expect(host.counts()).toEqual({ project: 1 });
  });

  test('a new file and a changed one: what leads there, the tree, and the new file', async () => {
    const host = await hostOf();
    await host.publish(simple);
    const provider = providerOf(host);
    await list(provider);
    host.counts();
    const fourth: CommitDescription = { id: 'fourth', at: start + 30, files: [[`${agents}/c.md`, '1'], [file, '3']] };
    await host.publish([...simple, fourth]);
    expect(await list(provider)).toEqual([simpleListing[0], [`${agents}/c.md`, start + 30], simpleListing[1]]);
    expect(host.counts()).toEqual({ commit: 1, tree: 1, commits: 2 });
  });

  test('a merge of something else: what leads there, and that nothing of the directory changed', async () => {
    const host = await hostOf();
    await host.publish(simple);
    const provider = providerOf(host);
    await list(provider);
    host.counts();
    await host.publish([
      ...simple,
      { id: 'side', parents: ['second'], at: start + 30, files: [['src/y', '1']] },
      { id: 'merge', parents: ['third', 'side'], at: start + 40, files: [['src/y', '1']] },
    ]);
    expect(await list(provider)).toEqual(simpleListing);
    expect(host.counts()).toEqual({ commit: 1, commits: 2 });
    expect(await list(provider)).toEqual(simpleListing);
    expect(host.counts()).toEqual({ commit: 1 });
  });

  test('a merge that changes one of many files: that one is asked for again', async () => {
    const host = await hostOf();
    const many = manyFiles(20);
    await host.publish(many);
    const provider = providerOf(host);
    await list(provider);
    host.counts();
    const changed = `${agents}/0007.md`;
    await host.publish([
      ...many,
      { id: 'side', parents: ['c10'], at: start + 100, files: [[changed, 'side']] },
      { id: 'merge', parents: ['c19', 'side'], at: start + 110, files: [[changed, 'side']] },
    ]);
    const listing = await list(provider);
    expect(listing).toHaveLength(20);
    expect(listing[7]).toEqual([changed, start + 7]);
    expect(host.counts()).toEqual({ commit: 1, tree: 1, commits: 3 });
  });

  test('a merge that takes another version of a file, with the history of that one', async () => {
    const host = await hostOf();
    const before: CommitDescription[] = [
      { id: 'root', at: start, files: [['other', '1']] },
      { id: 'side', parents: ['root'], at: start + 10, files: [[file, 'side']] },
      { id: 'trunk', parents: ['root'], at: start + 20, files: [[file, 'trunk'], [`${agents}/b.md`, '1'], [`${agents}/c.md`, '1']] },
    ];
    await host.publish(before);
    const provider = providerOf(host);
    expect((await list(provider))[0]).toEqual([file, start + 20]);
    const merge: CommitDescription = { id: 'merge', parents: ['trunk', 'side'], at: start + 30, files: [[file, 'side']] };
    await host.publish([...before, merge]);
    expect((await list(provider))[0]).toEqual([file, start + 10]);
    const revert: CommitDescription = { id: 'revert', at: start + 40, files: [[file, 'trunk']] };
    const again = providerOf(host);
    await host.publish(before);
    await list(again);
    await host.publish([...before, merge, revert]);
    expect((await list(again))[0]).toEqual([file, start + 10]);
  });

  test('a file is gone: no file is asked for', async () => {
    const host = await hostOf();
    await host.publish(simple);
    const provider = providerOf(host);
    await list(provider);
    host.counts();
    await host.publish([...simple, { id: 'fourth', at: start + 30, files: [[file, null]] }]);
    expect(await list(provider)).toEqual(simpleListing.slice(1));
    expect(host.counts()).toEqual({ commit: 1, tree: 1, commits: 1 });
  });

  test('a rewritten history is read anew', async () => {
    const host = await hostOf();
    await host.publish(simple);
    const provider = providerOf(host);
    await list(provider);
    host.counts();
    await host.publish([{ id: 'rewritten', at: start + 50, files: [[file, '2'], [`${agents}/deploy/b.md`, '1']] }]);
    expect(await list(provider)).toEqual(simpleListing.map(([path]) => [path, start + 50]));
    expect(host.counts()).toEqual({ commit: 1, tree: 1, commits: 3 });
  });

  test('what was found out before a failure is kept', async () => {
    const host = await hostOf();
    await host.publish(manyFiles(20));
    host.faults.add({ fault: { kind: 'status', status: 500 }, route: 'commits', after: 12 });
    const provider = providerOf(host, { concurrency: 1 });
    await expect(list(provider)).rejects.toMatchObject({ code: 'provider_failed' });
    host.faults.clear();
    host.counts();
    expect(await list(provider)).toHaveLength(20);
    expect(host.counts()).toEqual({ commit: 1, commits: 8 });
  });

  test('a listing ends when its requests are spent, and the next one goes on from there', async () => {
    const host = await hostOf();
    await host.publish(manyFiles(20));
    const provider = providerOf(host, { maxRequests: 14, concurrency: 1 });
    expect(await failureOf(list(provider))).toMatch(/^provider_failed: .*too_large.*14 requests/u);
    expect(host.counts()).toEqual({ commit: 1, tree: 1, commits: 12 });
    expect(await list(provider)).toHaveLength(20);
    expect(host.counts()).toEqual({ commit: 1, commits: 8 });
  });

  test('a store that fails makes it dearer, and no more', async () => {
    const host = await hostOf();
    await host.publish(simple);
    const listingCache = { get: () => Promise.reject(new Error('broken')), put: () => Promise.reject(new Error('broken')) };
    const provider = providerOf(host, { listingCache });
    for (let round = 0; round < 2; round += 1) {
      expect(await list(provider)).toEqual(simpleListing);
      expect(host.counts()).toEqual({ commit: 1, tree: 1, commits: 2 });
    }
    const rubbish = { get: async () => '{"version":1,"files":[[1]]}', put: async () => undefined };
    expect(await list(providerOf(host, { listingCache: rubbish }))).toEqual(simpleListing);
  });
});

describe('a project that was renamed', () => {
  test('is followed, told by its new name, and redirected once', async () => {
    const host = await hostOf({ root: '/gitlab' });
    await host.publish(simple, 'acme/old');
    host.projects.rename('acme/old', 'other/deep/skep-config');
    const provider = providerOf(host);
    const names: string[] = [];
    const query = { ...everything, directory: (name: string) => (names.push(name), agents) };
    expect(pairs(await provider.listFiles('acme/old', query))).toEqual(simpleListing);
    expect(names).toEqual(['skep-config']);
    expect(host.counts()).toEqual({ commit: 2, tree: 1, commits: 2 });
    expect(await provider.find('acme/old')).toEqual({ path: 'other/deep/skep-config', defaultBranch: 'main' });
    expect(host.requests.filter(({ target }) => target.includes('acme'))).toHaveLength(2);
  });

  test('has the letters that it has, however it is asked for', async () => {
    const host = await hostOf();
    await host.publish(simple, 'Acme/Skep-Config');
    const names: string[] = [];
    const query = { ...everything, directory: (name: string) => (names.push(name), agents) };
    expect(pairs(await providerOf(host).listFiles('acme/skep-config', query))).toEqual(simpleListing);
    expect(names).toEqual(['Skep-Config']);
  });
});
