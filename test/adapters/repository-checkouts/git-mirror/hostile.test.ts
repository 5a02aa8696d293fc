import { chmod, chown, mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createLocalGitProvider } from '../../../../src/adapters/git-provider/local/index.ts';
import type { GitProvider } from '../../../../src/ports/git-provider.ts';
import type { CheckoutRequest } from '../../../../src/ports/repository-checkouts.ts';
import { git } from '../../../contracts/git-repository.ts';
import { commits, failureOf, mirrorOf, open, publish, temporaryFolder } from './support.ts';

function providerOf(root: string): GitProvider {
  const provider = createLocalGitProvider({ root });
  onTestFinished(() => provider.close());
  return provider;
}

async function requestOf(provider: GitProvider, repository: string): Promise<CheckoutRequest> {
  return { provider: 'local', repository, remote: await provider.remote(repository), branch: null };
}

/** Writes every setting and hook with which a repository may run programs when git fetches from it or checks it out. */
async function setTraps(gitDir: string, canaries: string): Promise<void> {
  const touch = (name: string): string => `touch '${join(canaries, name)}'`;
  await writeFile(
    join(gitDir, 'config'),
    `[core]
	repositoryFormatVersion = 1
	bare = true
	fsmonitor = "${touch('fsmonitor')}; false"
	alternateRefsCommand = "${touch('alternate-refs')}"
	hooksPath = hooks
[extensions]
	partialClone = promisor
[remote "promisor"]
	url = "ext::sh -c ${touch('promisor').replaceAll("'", '')}"
	promisor = true
[uploadpack]
	packObjectsHook = "${touch('pack-objects-hook')}; exec"
	hideRefs = refs/heads
[filter "trap"]
	smudge = "${touch('smudge')}; cat"
	process = "${touch('process')}"
	required = true
[include]
	path = ${join(canaries, 'missing')}
`,
  );
  await mkdir(join(gitDir, 'info'), { recursive: true });
  await writeFile(join(gitDir, 'info/attributes'), '* filter=trap export-ignore\n');
  await mkdir(join(gitDir, 'hooks'), { recursive: true });
  for (const hook of ['post-checkout', 'post-index-change', 'reference-transaction', 'pre-auto-gc', 'post-update']) {
    await writeFile(join(gitDir, 'hooks', hook), `#!/bin/sh\n${touch(`hook-${hook}`)}\n`);
    await chmod(join(gitDir, 'hooks', hook), 0o755);
  }
}

describe('A checkout of a local repository', () => {
  test('is not affected by its configuration, hooks or attributes, and does not contain them', async () => {
    const [root, canaries] = [await temporaryFolder(), await temporaryFolder()];
    await setTraps(await publish(root, 'shop', { commits: commits(3) }), canaries);
    const tree = await open(mirrorOf(join(await temporaryFolder(), 'mirrors')), await requestOf(providerOf(root), 'shop'));
    expect(Object.keys(tree.files)).toHaveLength(3);
    expect(await readdir(canaries)).toEqual([]);
    const config = await readFile(join(tree.folder, '.git/config'), 'utf8');
    expect(config).not.toMatch(/trap|touch|include|remote|\//u);
    expect(await readdir(join(tree.folder, '.git/hooks'))).toEqual([]);
  });

  test('does not use replaced objects', async () => {
    const root = await temporaryFolder();
    const gitDir = await publish(root, 'shop', { commits: commits(3) });
    const [head, older] = await Promise.all(['main', 'main~2'].map(async (name) => (await git(gitDir, ['rev-parse', name])).trim()));
    await git(gitDir, ['replace', head ?? '', older ?? '']);
    const tree = await open(mirrorOf(join(await temporaryFolder(), 'mirrors')), await requestOf(providerOf(root), 'shop'));
    expect([tree.commit, Object.keys(tree.files).length]).toEqual([head, 3]);
  });

  test('fails if a link or `alternates` in the repository leads out of the root folder', async () => {
    const [root, outside] = [await temporaryFolder(), await temporaryFolder()];
    const provider = providerOf(root);
    const secret = await publish(outside, 'secret', { commits: commits(2) });
    for (const name of ['refs', 'objects', 'packed-refs']) {
      const gitDir = join(root, `${name}.git`);
      await mkdir(gitDir);
      await writeFile(join(gitDir, 'HEAD'), 'ref: refs/heads/main\n');
      for (const each of ['refs', 'objects']) if (each !== name) await mkdir(join(gitDir, each));
      await symlink(join(secret, name === 'packed-refs' ? 'config' : name), join(gitDir, name));
      expect(await failureOf(provider.remote(name))).toMatch(/^provider_failed: .*outside the root folder/u);
    }
    const borrowing = await publish(root, 'borrowing', { commits: commits(1) });
    await mkdir(join(borrowing, 'objects/info'), { recursive: true });
    await writeFile(join(borrowing, 'objects/info/alternates'), `${join(secret, 'objects')}\n`);
    expect(await failureOf(provider.remote('borrowing'))).toMatch(/^provider_failed: .*outside the root folder/u);
    expect(await failureOf(provider.remote('../secret'))).toMatch(/^repository_not_found: /u);
  });

  test('keeps the history of a shallow clone and the branch of a linked work tree', async () => {
    const root = await temporaryFolder();
    const bare = await publish(root, 'origin', { commits: commits(4), branches: { side: 'c1' } });
    await git(bare, ['clone', '--quiet', '--depth=2', `file://${bare}`, join(root, 'shallow')]);
    await git(bare, ['worktree', 'add', '--quiet', join(root, 'linked'), 'side']);
    const provider = providerOf(root);
    const mirror = mirrorOf(join(await temporaryFolder(), 'mirrors'));
    const shallow = await open(mirror, await requestOf(provider, 'shallow'));
    expect([Object.keys(shallow.files).length, await shallow.git('rev-list', '--count', 'HEAD')]).toEqual([4, '2']);
    await shallow.git('fsck', '--full');
    const linked = await open(mirror, await requestOf(provider, 'linked'));
    expect([linked.branch, Object.keys(linked.files).length]).toEqual(['side', 2]);
  });

  test('uses one temporary folder, which is removed when the provider closes', async () => {
    const [root, temporary] = [await temporaryFolder(), await temporaryFolder()];
    await publish(root, 'shop', { commits: commits(1) });
    // The folder of a process that was killed.
    await mkdir(join(temporary, 'skep-git-remotes-4194399-x', '0'), { recursive: true });
    const provider = createLocalGitProvider({ root, temporaryFolder: temporary });
    const urls = await Promise.all([provider.remote('shop'), provider.remote('shop')]);
    expect(new Set(urls.map(({ url }) => url)).size).toBe(1);
    expect(await readdir(temporary)).toHaveLength(1);
    await provider.close();
    expect(await readdir(temporary)).toEqual([]);
    const later = createLocalGitProvider({ root, temporaryFolder: join(temporary, 'later') });
    expect(await failureOf(later.remote('shop'))).toMatch(/^provider_failed: .*temporary folder/u);
    await mkdir(join(temporary, 'later'));
    expect((await later.remote('shop')).url).toContain('later');
    await later.close();
  });

  test.runIf(process.getuid?.() === 0)('removes no temporary folder of another user', async () => {
    const [root, temporary] = [await temporaryFolder(), await temporaryFolder()];
    await publish(root, 'shop', { commits: commits(1) });
    const foreign = join(temporary, 'skep-git-remotes-4194399-x');
    await mkdir(foreign);
    await chown(foreign, 12_345, 12_345);
    const provider = createLocalGitProvider({ root, temporaryFolder: temporary });
    await provider.remote('shop');
    await provider.close();
    expect(await readdir(temporary)).toEqual(['skep-git-remotes-4194399-x']);
  });
});
