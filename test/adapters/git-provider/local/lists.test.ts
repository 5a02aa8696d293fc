import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createLocalGitProvider } from '../../../../src/adapters/git-provider/local/index.ts';
import { createRepository } from '../../../contracts/git-repository.ts';

const one = { commits: [{ id: 'first', at: 1_600_000_000, files: [['a', '1'] as const] }] };
const first = { after: null, limit: 100 };

async function createRoot() {
  const root = await mkdtemp(join(tmpdir(), 'skep-local-lists-'));
  const provider = createLocalGitProvider({ root });
  onTestFinished(async () => {
    await provider.close();
    await rm(root, { recursive: true, force: true });
  });
  const search = async (text: string) => (await provider.searchRepositories?.(text, first))?.items.map(({ path }) => path);
  return { root, provider, search };
}

test('a search finds bare repositories and work trees at any depth, but no links and no broken ones', async () => {
  const { root, search } = await createRoot();
  for (const name of ['shop.git', 'acme/shop/.git', 'acme/deep/er/Shop.git', 'acme/.skep']) {
    await mkdir(join(root, name, '..'), { recursive: true });
    await createRepository(join(root, name), one);
  }
  // A repository inside a repository is content, and not found.
  await createRepository(join(root, 'acme/shop/inner'), one);
  await symlink(join(root, 'acme'), join(root, 'linked-shop'));
  await mkdir(join(root, 'outside-shop'));
  await writeFile(join(root, 'outside-shop/.git'), 'gitdir: /etc\n');
  await writeFile(join(root, 'shop.txt'), 'no folder');
  expect(await search('shop')).toEqual(['acme/deep/er/Shop', 'acme/shop', 'shop']);
  expect(await search('.skep')).toEqual(['acme/.skep']);
  expect(await search('acme/SH')).toEqual(['acme/shop']);
});

test('a search finds a root that is a repository itself, and fails if the root is missing', async () => {
  const { root, provider, search } = await createRoot();
  await createRepository(join(root, '.git'), one);
  expect(await search(basename(root).slice(2))).toEqual([basename(root)]);
  expect((await provider.listBranches?.(basename(root), first))?.items).toMatchObject([{ name: 'main' }]);
  await rm(root, { recursive: true });
  await expect(search('shop')).rejects.toMatchObject({ code: 'provider_failed' });
});
