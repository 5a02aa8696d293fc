import { describe, expect, test } from 'vitest';
import { createMemoryListingCache } from '../../../../src/adapters/git-provider/listing-caches.ts';
import type { CommitDescription } from '../../../contracts/git-repository.ts';
import { agents, everything, failureOf, list, pairs, simple, simpleListing, start } from '../support.ts';
import { type Host, hostOf, manyFiles, providerOf } from './support.ts';

const file = `${agents}/a.md`;

describe('The first listing', () => {
  test('takes one request for each page of the tree and one for each file', async () => {
    const host = await hostOf();
    await host.publish(simple);
    expect(await list(providerOf(host))).toEqual(simpleListing);
    expect(host.counts()).toEqual({ commit: 1, tree: 1, commits: 2 });
  });

  test('requests only the histories of files that the query accepts', async () => {
    const host = await hostOf();
    await host.publish(simple);
    const provider = providerOf(host);
    const some = { ...everything, accepts: (path: string) => path === 'a.md' };
    expect(pairs(await provider.listFiles('acme/shop', some))).toEqual(simpleListing.slice(0, 1));
    expect(host.counts()).toEqual({ commit: 1, tree: 1, commits: 1 });
    expect(await list(provider)).toEqual(simpleListing);
    expect(host.counts()).toEqual({ commit: 1, commits: 1 });
  });

  test('of several pages sends at most `concurrency` requests at a time', async () => {
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

  test('takes two requests for a missing directory or an empty repository', async () => {
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
  ])('takes for a file with %i commits at most %i requests', async (count, requests) => {
    const host = await hostOf();
    const changes = Array.from({ length: count }, (_, index) => ({ id: `c${index}`, at: start + index, files: [[file, String(index)] as const] }));
    await host.publish(changes);
    expect(await list(providerOf(host))).toEqual([[file, start]]);
    const { commits = 0 } = host.counts();
    expect(commits).toBeLessThanOrEqual(requests);
    expect(commits > 1).toBe(count > 100);
  });
});

/** A host with this repository, whose requests are counted anew after a first listing. */
async function listed(repository: Parameters<Host['publish']>[0]) {
  const host = await hostOf();
  await host.publish(repository);
  const provider = providerOf(host);
  await list(provider);
  host.counts();
  return { host, provider };
}

describe('A later listing', () => {
  test('takes one request if nothing changed, also after a restart', async () => {
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

  test('takes as many requests for 100 callers at once as for one', async () => {
    const host = await hostOf();
    await host.publish(simple);
    const provider = providerOf(host);
    const listings = await Promise.all(Array.from({ length: 100 }, () => list(provider)));
    for (const listing of listings) expect(listing).toEqual(simpleListing);
    expect(host.counts()).toEqual({ commit: 1, tree: 1, commits: 2 });
    await Promise.all(Array.from({ length: 100 }, () => provider.find('acme/shop')));
    expect(host.counts()).toEqual({ project: 1 });
  });

  test('requests the tree, the common ancestor, and the histories of new and changed files', async () => {
    const { host, provider } = await listed(simple);
    const fourth: CommitDescription = { id: 'fourth', at: start + 30, files: [[`${agents}/c.md`, '1'], [file, '3']] };
    await host.publish([...simple, fourth]);
    expect(await list(provider)).toEqual([simpleListing[0], [`${agents}/c.md`, start + 30], simpleListing[1]]);
    expect(host.counts()).toEqual({ commit: 1, tree: 1, mergeBase: 1, commits: 2 });
  });

  test('requests no history of a file after a merge that changed nothing in the directory', async () => {
    const { host, provider } = await listed(simple);
    await host.publish([
      ...simple,
      { id: 'side', parents: ['second'], at: start + 30, files: [['src/y', '1']] },
      { id: 'merge', parents: ['third', 'side'], at: start + 40, files: [['src/y', '1']] },
    ]);
    expect(await list(provider)).toEqual(simpleListing);
    expect(host.counts()).toEqual({ commit: 1, tree: 1, mergeBase: 1 });
    expect(await list(provider)).toEqual(simpleListing);
    expect(host.counts()).toEqual({ commit: 1 });
  });

  test('requests only the history of the file that a merge changed', async () => {
    const many = manyFiles(20);
    const { host, provider } = await listed(many);
    const changed = `${agents}/0007.md`;
    await host.publish([
      ...many,
      { id: 'side', parents: ['c10'], at: start + 100, files: [[changed, 'side']] },
      { id: 'merge', parents: ['c19', 'side'], at: start + 110, files: [[changed, 'side']] },
    ]);
    const listing = await list(provider);
    expect(listing).toHaveLength(20);
    expect(listing[7]).toEqual([changed, start + 7]);
    expect(host.counts()).toEqual({ commit: 1, tree: 1, mergeBase: 1, commits: 1 });
  });

  test('has the date of the version that a merge took, but the known date after a revert', async () => {
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
    expect((await list(again))[0]).toEqual([file, start + 20]);
  });

  test('requests no history of a file after another file was removed', async () => {
    const { host, provider } = await listed(simple);
    await host.publish([...simple, { id: 'fourth', at: start + 30, files: [[file, null]] }]);
    expect(await list(provider)).toEqual(simpleListing.slice(1));
    expect(host.counts()).toEqual({ commit: 1, tree: 1, mergeBase: 1 });
  });

  test('requests everything again if the history was rewritten', async () => {
    const { host, provider } = await listed(simple);
    await host.publish([{ id: 'rewritten', at: start + 50, files: [[file, '2'], [`${agents}/deploy/b.md`, '1']] }]);
    expect(await list(provider)).toEqual(simpleListing.map(([path]) => [path, start + 50]));
    expect(host.counts()).toEqual({ commit: 1, tree: 1, mergeBase: 1, commits: 2 });
  });

  test.each([
    ['to an earlier commit', 'second'],
    ['to another branch', 'beside'],
    ['to a history without a common commit', 'apart'],
  ])('requests everything again if the default branch moved %s', async (_, main) => {
    const files = [[file, '3'], [`${agents}/deploy/b.md`, '1']] as const;
    const beside: CommitDescription = { id: 'beside', parents: ['second'], at: start + 50, files };
    const apart: CommitDescription = { id: 'apart', parents: [], at: start + 60, files };
    const commits = [...simple, beside, apart];
    const { host, provider } = await listed({ commits, branches: { main: 'third' } });
    await host.publish({ commits, branches: { main } });
    const listing = await list(provider);
    expect(host.counts()).toEqual({ commit: 1, tree: 1, mergeBase: 1, commits: 2 });
    expect(listing).toEqual(await list(providerOf(host)));
  });

  test.each([400, 404, 500])('requests all histories again if the host answers %i instead of the common ancestor', async (status) => {
    const { host, provider } = await listed(simple);
    await host.publish([...simple, { id: 'fourth', at: start + 30, files: [['src/y', '1']] }]);
    host.faults.add({ fault: { kind: 'status', status }, route: 'mergeBase' });
    expect(await list(provider)).toEqual(simpleListing);
    expect(host.counts()).toEqual({ commit: 1, tree: 1, mergeBase: 1, commits: 2 });
  });

  test('keeps what was read before a failure', async () => {
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

  test('continues where an earlier one reached `maxRequests`', async () => {
    const host = await hostOf();
    await host.publish(manyFiles(20));
    const provider = providerOf(host, { maxRequests: 14, concurrency: 1 });
    expect(await failureOf(list(provider))).toMatch(/^provider_failed: .*too_large.*14 requests/u);
    expect(host.counts()).toEqual({ commit: 1, tree: 1, commits: 12 });
    expect(await list(provider)).toHaveLength(20);
    expect(host.counts()).toEqual({ commit: 1, commits: 8 });
  });

  test('takes all requests again if the cache fails, and ignores invalid data in it', async () => {
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
