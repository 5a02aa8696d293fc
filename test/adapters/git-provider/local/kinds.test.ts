import { appendFile, mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { readHead } from '../../../../src/adapters/git-provider/local/repository-head.ts';
import { findRepository } from '../../../../src/adapters/git-provider/local/repository-location.ts';
import { agents, everything, failureOf, list, simple, simpleListing, start } from '../support.ts';
import { bare, gitIn, providerOf, temporaryFolder } from './support.ts';

describe('local-git reads every kind of repository', () => {
  test('a bare one, with and without its ending, and with its packed refs', async () => {
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

  test('a work tree, a linked work tree with a HEAD of its own, and a submodule', async () => {
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

  test('a detached HEAD', async () => {
    const root = await temporaryFolder();
    await gitIn(root, 'clone', '--quiet', await bare(root, 'origin.git'), 'tree');
    await gitIn(join(root, 'tree'), 'checkout', '--quiet', '--detach', 'HEAD~2');
    const provider = providerOf({ root });
    expect(await list(provider, 'tree')).toEqual(simpleListing.slice(0, 1));
    expect(await provider.find('tree')).toEqual({ path: 'tree', defaultBranch: null });
  });

  test('a shallow clone, whose history begins where it is cut off, and goes on when it is deepened', async () => {
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

  test('SHA-256 objects, a new commit included', async () => {
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

  test('a blobless clone, since no content is read', async () => {
    const root = await temporaryFolder();
    const origin = await bare(root, 'origin.git');
    await gitIn(origin, 'config', 'uploadpack.allowFilter', 'true');
    await gitIn(root, 'clone', '--quiet', '--no-checkout', '--filter=blob:none', `file://${origin}`, 'partial');
    expect(await list(providerOf({ root }), 'partial')).toEqual(simpleListing);
  });

  test('objects that are borrowed from a neighbour', async () => {
    const root = await temporaryFolder();
    await bare(root, 'origin.git');
    await gitIn(root, 'clone', '--quiet', '--shared', 'origin.git', 'first');
    await gitIn(root, 'clone', '--quiet', '--shared', 'first', 'second');
    expect(await list(providerOf({ root }), 'second')).toEqual(simpleListing);
  });

  test('a commit-graph with filters of the changed paths', async () => {
    const root = await temporaryFolder();
    const gitDir = await bare(root, 'shop');
    await gitIn(gitDir, 'commit-graph', 'write', '--reachable', '--changed-paths');
    expect(await list(providerOf({ root }), 'shop')).toEqual(simpleListing);
  });

  test('a HEAD and a branch that name another branch, by text and by a link of old', async () => {
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

  test('branches with slashes, other alphabets, and names that end in another one', async () => {
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

  test('refuses the reftable format in words', async () => {
    const root = await temporaryFolder();
    const gitDir = await bare(root, 'shop');
    await writeFile(join(gitDir, 'HEAD'), 'ref: refs/heads/.invalid\n');
    await mkdir(join(gitDir, 'reftable'));
    await appendFile(join(gitDir, 'config'), '[extensions]\n\trefStorage = reftable\n');
    expect(await failureOf(list(providerOf({ root }), 'shop'))).toMatch(/^provider_failed: .*reftable format/u);
  });

  test('finds the same commit as git does', async () => {
    const root = await temporaryFolder();
    const gitDir = await bare(root, 'shop');
    const { oid } = await readHead(await findRepository(root, 'shop'));
    expect(oid).toBe(await gitIn(gitDir, 'rev-parse', 'HEAD'));
  });
});

describe('local-git finds a repository by its path', () => {
  test('the root itself has its folder name, unless a repository below it has that name', async () => {
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

  test('the exact name goes before the one with the ending, and the path tells which it was', async () => {
    const root = await temporaryFolder();
    await bare(root, 'shop', { commits: [] });
    await bare(root, 'shop.git');
    const provider = providerOf({ root });
    expect(await list(provider, 'shop')).toEqual([]);
    expect(await list(provider, 'shop.git')).toEqual(simpleListing);
    expect((await provider.find('shop.git')).path).toBe('shop.git');
  });

  test('the actual name is that of the folder behind a link', async () => {
    const root = await temporaryFolder();
    await bare(root, 'group/actual.git');
    await symlink('group/actual.git', join(root, 'alias'));
    const provider = providerOf({ root });
    const names: string[] = [];
    await provider.listFiles('alias', { directory: (name) => (names.push(name), agents), accepts: () => true });
    expect(names).toEqual(['actual']);
    expect((await provider.find('alias')).path).toBe('group/actual');
  });

  test('a folder, a file and a folder inside a work tree are no repositories', async () => {
    const root = await temporaryFolder();
    await gitIn(root, 'clone', '--quiet', await bare(root, 'origin.git'), 'tree');
    await writeFile(join(root, 'file'), 'x');
    const provider = providerOf({ root });
    for (const name of ['tree/src', 'tree/src/x', 'file', 'file/x', 'origin.git/refs', 'no', 'x'.repeat(300)]) {
      expect(await failureOf(list(provider, name))).toMatch(/^repository_not_found: /u);
    }
  });

  test('a missing root is a failure of the provider, not of the caller', async () => {
    const provider = providerOf({ root: join(await temporaryFolder(), 'missing') });
    expect(await failureOf(list(provider, 'shop'))).toMatch(/^provider_failed: .*root folder/u);
    expect(await provider.check()).toMatchObject({ ok: false, detail: expect.stringContaining('create it') });
  });
});
