import { appendFile, mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { agents, everything, failureOf, list, simple, simpleListing, start } from '../support.ts';
import { bare, gitIn, providerOf, temporaryFolder } from './support.ts';

describe('local-git', () => {
  test('lists a bare repository with and without `.git` in the name, also with packed refs', async () => {
    const root = await temporaryFolder();
    const gitDir = await bare(root, 'acme/shop.git');
    const provider = providerOf({ root });
    expect(await list(provider, 'acme/shop')).toEqual(simpleListing);
    expect(await list(provider, 'acme/shop.git')).toEqual(simpleListing);
    expect(await provider.find('acme/shop.git')).toEqual({ path: 'acme/shop', defaultBranch: 'main' });
    await gitIn(gitDir, 'pack-refs', '--all');
    await gitIn(gitDir, 'gc', '--quiet');
    expect(await list(providerOf({ root }), 'acme/shop')).toEqual(simpleListing);
  });

  test('lists a work tree, a submodule, and a linked work tree with its own HEAD', async () => {
    const root = await temporaryFolder();
    const origin = await bare(root, 'origin.git');
    await gitIn(root, 'clone', '--quiet', origin, 'tree');
    await gitIn(join(root, 'tree'), 'worktree', 'add', '--quiet', '-b', 'older', '../linked', 'HEAD~2');
    await gitIn(join(root, 'tree'), '-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', origin, 'module');
    const provider = providerOf({ root });
    expect(await list(provider, 'tree')).toEqual(simpleListing);
    expect(await provider.find('tree')).toEqual({ path: 'tree', defaultBranch: 'main' });
    expect(await list(provider, 'linked')).toEqual(simpleListing.slice(0, 1));
    expect(await provider.find('linked')).toEqual({ path: 'linked', defaultBranch: 'older' });
    expect(await list(provider, 'tree/module')).toEqual(simpleListing);
  });

  test('lists a detached HEAD and returns no default branch for it', async () => {
    const root = await temporaryFolder();
    await gitIn(root, 'clone', '--quiet', await bare(root, 'origin.git'), 'tree');
    await gitIn(join(root, 'tree'), 'checkout', '--quiet', '--detach', 'HEAD~2');
    const provider = providerOf({ root });
    expect(await list(provider, 'tree')).toEqual(simpleListing.slice(0, 1));
    expect(await provider.find('tree')).toEqual({ path: 'tree', defaultBranch: null });
  });

  test('lists a shallow clone from where its history begins, also after it was deepened', async () => {
    const root = await temporaryFolder();
    const origin = await bare(root, 'origin.git');
    await gitIn(root, 'clone', '--quiet', '--depth=2', `file://${origin}`, 'tree');
    const provider = providerOf({ root });
    expect(await list(provider, 'tree')).toEqual([
      [`${agents}/a.md`, start + 10],
      [`${agents}/deploy/b.md`, start + 10],
    ]);
    await gitIn(join(root, 'tree'), 'fetch', '--quiet', '--unshallow');
    expect(await list(provider, 'tree')).toEqual(simpleListing);
  });

  test('lists and reads SHA-256 objects, also after a new commit', async () => {
    const root = await temporaryFolder();
    const gitDir = await bare(root, 'shop', { commits: simple, objectFormat: 'sha256' });
    expect((await gitIn(gitDir, 'rev-parse', 'HEAD')).length).toBe(64);
    const provider = providerOf({ root });
    expect(await list(provider, 'shop')).toEqual(simpleListing);
    const { files: [file] } = await provider.listFiles('shop', everything);
    expect([file!.blobId.length, String(await provider.readFile('shop', file!, 100))]).toEqual([64, '2']);
    const tree = await gitIn(gitDir, 'rev-parse', 'HEAD^{tree}');
    await gitIn(gitDir, 'update-ref', 'HEAD', await gitIn(gitDir, 'commit-tree', '-p', 'HEAD', '-m', 'new', tree));
    expect(await list(provider, 'shop')).toEqual(simpleListing);
  });

  test('lists a blobless clone, since it reads no content', async () => {
    const root = await temporaryFolder();
    const origin = await bare(root, 'origin.git');
    await gitIn(origin, 'config', 'uploadpack.allowFilter', 'true');
    await gitIn(root, 'clone', '--quiet', '--no-checkout', '--filter=blob:none', `file://${origin}`, 'partial');
    expect(await list(providerOf({ root }), 'partial')).toEqual(simpleListing);
  });

  test('lists a repository that shares the objects of another one (`alternates`)', async () => {
    const root = await temporaryFolder();
    await bare(root, 'origin.git');
    await gitIn(root, 'clone', '--quiet', '--shared', 'origin.git', 'first');
    await gitIn(root, 'clone', '--quiet', '--shared', 'first', 'second');
    expect(await list(providerOf({ root }), 'second')).toEqual(simpleListing);
  });

  test('lists a repository with a commit-graph that has filters of changed paths', async () => {
    const root = await temporaryFolder();
    const gitDir = await bare(root, 'shop');
    await gitIn(gitDir, 'commit-graph', 'write', '--reachable', '--changed-paths');
    expect(await list(providerOf({ root }), 'shop')).toEqual(simpleListing);
  });

  test('follows a HEAD and a branch that refer to another branch, also by a symbolic link', async () => {
    const root = await temporaryFolder();
    const gitDir = await bare(root, 'shop');
    await gitIn(gitDir, 'symbolic-ref', 'refs/heads/alias', 'refs/heads/main');
    await gitIn(gitDir, 'symbolic-ref', 'HEAD', 'refs/heads/alias');
    const provider = providerOf({ root });
    expect(await list(provider, 'shop')).toEqual(simpleListing);
    expect(await provider.find('shop')).toEqual({ path: 'shop', defaultBranch: 'main' });
    await rm(join(gitDir, 'HEAD'));
    await symlink('refs/heads/main', join(gitDir, 'HEAD'));
    expect(await provider.find('shop')).toEqual({ path: 'shop', defaultBranch: 'main' });
    await rm(join(gitDir, 'HEAD'));
    await symlink('refs/heads/unborn', join(gitDir, 'HEAD'));
    expect(await list(provider, 'shop')).toEqual([]);
  });

  test('finds branches with slashes, other alphabets, or the name of another one at the end', async () => {
    const root = await temporaryFolder();
    for (const branch of ['feature/größe', '日本', 'in', 'x/main']) {
      const gitDir = await bare(root, 'shop', { commits: simple, defaultBranch: branch, branches: { [`a/${branch}`]: 'first' } });
      await gitIn(gitDir, 'pack-refs', '--all');
      const provider = providerOf({ root });
      expect(await provider.find('shop')).toEqual({ path: 'shop', defaultBranch: branch });
      expect(await list(provider, 'shop')).toEqual(simpleListing);
      await rm(gitDir, { recursive: true });
    }
  });

  test('fails with a message about the reftable format if a repository uses it', async () => {
    const root = await temporaryFolder();
    const gitDir = await bare(root, 'shop');
    await writeFile(join(gitDir, 'HEAD'), 'ref: refs/heads/.invalid\n');
    await mkdir(join(gitDir, 'reftable'));
    await appendFile(join(gitDir, 'config'), '[extensions]\n\trefStorage = reftable\n');
    expect(await failureOf(list(providerOf({ root }), 'shop'))).toMatch(/^provider_failed: .*reftable format/u);
  });
});

describe('The name of a local repository', () => {
  test('is the folder name for the root itself, unless a repository below it has that name', async () => {
    const root = await temporaryFolder();
    await gitIn(root, 'clone', '--quiet', await bare(await temporaryFolder(), 'origin.git'), '.');
    const provider = providerOf({ root });
    const name = basename(root);
    expect(await list(provider, name)).toEqual(simpleListing);
    expect(await provider.find(name)).toEqual({ path: name, defaultBranch: 'main' });
    await mkdir(join(root, name));
    expect(await list(provider, name)).toEqual(simpleListing);
    await rm(join(root, name), { recursive: true });
    await bare(root, name, { commits: [] });
    expect(await list(provider, name)).toEqual([]);
  });

  test('is looked up as it is before `.git` is added, and `path` says which one was found', async () => {
    const root = await temporaryFolder();
    await bare(root, 'shop', { commits: [] });
    await bare(root, 'shop.git');
    const provider = providerOf({ root });
    expect(await list(provider, 'shop')).toEqual([]);
    expect(await list(provider, 'shop.git')).toEqual(simpleListing);
    expect((await provider.find('shop.git')).path).toBe('shop.git');
  });

  test('is the name of the target for a symbolic link', async () => {
    const root = await temporaryFolder();
    await bare(root, 'group/actual.git');
    await symlink('group/actual.git', join(root, 'alias'));
    const provider = providerOf({ root });
    const names: string[] = [];
    await provider.listFiles('alias', { directory: (name) => (names.push(name), agents), accepts: () => true });
    expect(names).toEqual(['actual']);
    expect((await provider.find('alias')).path).toBe('group/actual');
  });

  test('is not found for a plain folder, a file or a folder inside a work tree', async () => {
    const root = await temporaryFolder();
    await gitIn(root, 'clone', '--quiet', await bare(root, 'origin.git'), 'tree');
    await writeFile(join(root, 'file'), 'x');
    const provider = providerOf({ root });
    for (const name of ['tree/src', 'tree/src/x', 'file', 'file/x', 'origin.git/refs', 'no', 'x'.repeat(300)]) {
      expect(await failureOf(list(provider, name))).toMatch(/^repository_not_found: /u);
    }
  });

  test('leads to `provider_failed` if the root folder is missing', async () => {
    const provider = providerOf({ root: join(await temporaryFolder(), 'missing') });
    expect(await failureOf(list(provider, 'shop'))).toMatch(/^provider_failed: .*root folder/u);
    expect(await provider.check()).toMatchObject({ ok: false, detail: expect.stringContaining('create it') });
  });
});
