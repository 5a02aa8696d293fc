import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createRepository, gitProviderContract, type GitProviderHarness, type RepositoryDescription } from 'skep/testing';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createGiteaHarness } from './gitea-harness.ts';

// Some cases take longer than the 5 seconds that Vitest allows by default.
const limitMs = 120_000;

describe('Git provider contract: Gitea', () => {
  for (const { name, run } of gitProviderContract(createGiteaHarness)) test(name, run, limitMs);
});

// What only Gitea does needs tests of your own.
describe('Gitea provider', () => {
  const everything = { directory: () => '', accepts: () => true };
  let folder: string;
  let harness: GitProviderHarness;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'gitea-test-'));
    harness = await createGiteaHarness();
  });

  afterEach(async () => {
    await harness.close();
    await rm(folder, { recursive: true, force: true });
  });

  /** Makes a repository, and publishes it under each name. */
  async function publish(description: RepositoryDescription, ...names: readonly string[]): Promise<void> {
    const gitDir = join(folder, 'repository.git');
    await createRepository(gitDir, description);
    for (const name of names) await harness.publish(gitDir, name);
  }

  test('lists no files if the tree of the last commit is empty, which is null in Gitea', async () => {
    await publish({ commits: [{ id: 'empty', at: 1, files: [] }] }, 'acme/shop');
    expect(await harness.provider.listFiles('acme/shop', everything)).toEqual({ directory: '', files: [] });
    expect(await harness.provider.find('acme/shop')).toEqual({ path: 'acme/shop', defaultBranch: 'main' });
  });

  test.each([30, 31, 50, 51, 100])('dates a file after %d commits, whatever number of pages Gitea reports', async (count) => {
    const times = Array.from({ length: count }, (_, index) => index + 1);
    await publish({ commits: times.map((at) => ({ id: `c${at}`, at, files: [['a', String(at)]] })) }, 'acme/shop');
    expect((await harness.provider.listFiles('acme/shop', everything)).files).toMatchObject([{ path: 'a', createdAt: 1000 }]);
  });

  test('finds more repositories than Gitea returns at once, in pages of any size', async () => {
    const names = Array.from({ length: 120 }, (_, index) => `acme/shop-${index}`);
    await publish({ commits: [] }, ...names, 'acme/shop_1', 'acme/other');
    for (const limit of [7, 50, 100]) {
      const found: string[] = [];
      for (let after: string | null | undefined; after !== null; ) {
        const page = await harness.provider.searchRepositories?.('shop-', { after: after ?? null, limit });
        found.push(...(page?.items ?? []).map(({ path }) => path));
        after = page?.next ?? null;
      }
      expect(found.toSorted()).toEqual(names.toSorted());
    }
    const literal = await harness.provider.searchRepositories?.('p_1', { after: null, limit: 10 });
    expect(literal?.items).toEqual([{ path: 'acme/shop_1' }]);
  });
});
