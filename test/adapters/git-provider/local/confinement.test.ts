import { execFile } from 'node:child_process';
import { mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { failureOf, list, simpleListing } from '../support.ts';
import { bare, gitIn, providerOf, temporaryFolder } from './support.ts';

const leadsOut = /^provider_failed: .*(?:outside|out of) the root folder/u;
const notFound = /^repository_not_found: /u;

describe('A repository outside the root folder', () => {
  test('is not found through a symbolic link to it or to its parent folder', async () => {
    const [root, outside] = [await temporaryFolder(), await temporaryFolder()];
    await bare(outside, 'secret.git');
    await symlink(join(outside, 'secret.git'), join(root, 'link'));
    await symlink(join(outside, 'secret.git'), join(root, 'bare.git'));
    await symlink(outside, join(root, 'folder'));
    const provider = providerOf({ root });
    for (const name of ['link', 'bare', 'bare.git', 'folder/secret', 'folder/secret.git']) {
      expect(await failureOf(list(provider, name))).toMatch(notFound);
      expect(await failureOf(provider.find(name))).toMatch(notFound);
    }
  });

  test('is not found in a folder whose name only begins with the name of the root', async () => {
    const parent = await temporaryFolder();
    await bare(parent, 'root-secret/shop');
    await mkdir(join(parent, 'root'));
    await symlink('../root-secret/shop', join(parent, 'root/shop'));
    expect(await failureOf(list(providerOf({ root: join(parent, 'root') }), 'shop'))).toMatch(notFound);
  });

  test('is not found by a name with `..`, an absolute path or an invalid name', async () => {
    const root = await temporaryFolder();
    await bare(root, 'secret');
    await mkdir(join(root, 'inside'));
    const provider = providerOf({ root: join(root, 'inside') });
    const names = ['../secret', 'x/../../secret', '/etc', '', '.', '..', './.', 'a//b', 'a\0b', 'a\nb', '..\\secret', '~', '-x'];
    for (const name of names) expect(await failureOf(list(provider, name))).toMatch(notFound);
  });

  test('is not found in an excluded folder inside the root: not its files, its branches, nor by a search or a link', async () => {
    const root = await temporaryFolder();
    const gitDir = await bare(root, 'data/mirrors/secret');
    await bare(root, 'data-of-others/shop');
    await symlink('data/mirrors/secret', join(root, 'link'));
    const provider = providerOf({ root, excludedFolders: [join(root, 'data/../data'), join(root, 'missing')] });
    const file = { path: 'a', blobId: await gitIn(gitDir, 'rev-parse', 'HEAD^{tree}') };
    const page = { after: null, limit: 10 };
    for (const name of ['data/mirrors/secret', 'link']) {
      expect(await failureOf(list(provider, name))).toMatch(notFound);
      expect(await failureOf(provider.readFile(name, file, 100))).toMatch(notFound);
      expect(await failureOf(provider.remote(name))).toMatch(notFound);
      expect(await failureOf(provider.listBranches?.(name, page) ?? Promise.resolve())).toMatch(notFound);
    }
    expect((await provider.searchRepositories?.('', page))?.items).toEqual([{ path: 'data-of-others/shop' }]);
  });

  test('is refused as the target of `.git`, with the same message as a missing one', async () => {
    const [root, outside] = [await temporaryFolder(), await temporaryFolder()];
    const secret = await bare(outside, 'secret.git');
    const provider = providerOf({ root });
    const messages = new Set<string>();
    for (const target of [secret, `${secret}-missing`, '../../../../../../etc']) {
      await mkdir(join(root, 'tree'));
      await writeFile(join(root, 'tree/.git'), `gitdir: ${target}\n`);
      messages.add(await failureOf(list(provider, 'tree')));
      await rm(join(root, 'tree'), { recursive: true });
    }
    await mkdir(join(root, 'tree'));
    await symlink(secret, join(root, 'tree/.git'));
    messages.add(await failureOf(list(provider, 'tree')));
    expect([...messages]).toEqual([expect.stringMatching(leadsOut)]);
  });

  test('is refused as the target of `commondir`', async () => {
    const [root, outside] = [await temporaryFolder(), await temporaryFolder()];
    const secret = await bare(outside, 'secret.git');
    const gitDir = await bare(root, 'shop');
    await writeFile(join(gitDir, 'commondir'), `${secret}\n`);
    expect(await failureOf(list(providerOf({ root }), 'shop'))).toMatch(leadsOut);
  });

  test.each(['objects', 'objects/pack', 'objects/info'])('is refused as the target of a symbolic link at %s', async (folder) => {
    const [root, outside] = [await temporaryFolder(), await temporaryFolder()];
    const secret = await bare(outside, 'secret.git');
    const gitDir = await bare(root, 'shop');
    await rm(join(gitDir, folder), { recursive: true });
    await symlink(join(secret, folder), join(gitDir, folder));
    expect(await failureOf(list(providerOf({ root }), 'shop'))).toMatch(leadsOut);
  });

  test('is refused as the place of a pack or a loose object', async () => {
    const [root, outside] = [await temporaryFolder(), await temporaryFolder()];
    const provider = providerOf({ root });
    for (const packed of [true, false]) {
      const gitDir = await bare(root, 'shop');
      if (packed) await gitIn(gitDir, 'gc', '--quiet');
      const files = await promisify(execFile)('find', [join(gitDir, 'objects'), '-type', 'f', '-size', '+0']);
      const victim = files.stdout.split('\n').find((path) => (packed ? path.endsWith('.pack') : path !== '')) ?? '';
      await rename(victim, join(outside, 'object'));
      await symlink(join(outside, 'object'), victim);
      expect(await failureOf(list(provider, 'shop'))).toMatch(leadsOut);
      await rm(gitDir, { recursive: true });
      await rm(join(outside, 'object'));
    }
  });

  test('is refused in `alternates`, also if another repository refers to it', async () => {
    const [root, outside] = [await temporaryFolder(), await temporaryFolder()];
    const secret = await bare(outside, 'secret.git');
    const provider = providerOf({ root });
    const first = await bare(root, 'first', { commits: [] });
    const second = await bare(root, 'second');
    await writeFile(join(first, 'objects/info/alternates'), `# comment\n${secret}/objects\n`);
    await writeFile(join(second, 'objects/info/alternates'), '../../first/objects\n');
    expect(await failureOf(list(provider, 'second'))).toMatch(leadsOut);
    await writeFile(join(first, 'objects/info/alternates'), '../../second/objects\n');
    expect(await list(provider, 'second')).toEqual(simpleListing);
    await writeFile(join(second, 'objects/info/alternates'), `"${secret}/objects"\n`);
    expect(await failureOf(list(providerOf({ root }), 'second'))).toMatch(/^provider_failed: .*quoted name/u);
  });

  test('does not show the content of a file by its blob id', async () => {
    const [root, outside] = [await temporaryFolder(), await temporaryFolder()];
    const secret = await bare(outside, 'secret.git', { commits: [{ id: 'x', at: 0, files: [['key', 'a secret']] }] });
    const gitDir = await bare(root, 'shop');
    const file = { path: 'key', blobId: await gitIn(secret, 'rev-parse', 'main:key') };
    const provider = providerOf({ root });
    expect(await failureOf(provider.readFile('shop', file, 100))).toMatch(/^file_not_found: /u);
    await mkdir(join(gitDir, 'objects/info'), { recursive: true });
    await writeFile(join(gitDir, 'objects/info/alternates'), `${secret}/objects\n`);
    expect(await failureOf(provider.readFile('shop', file, 100))).toMatch(leadsOut);
    expect(await failureOf(provider.readFile('../secret', file, 100))).toMatch(/^repository_not_found: /u);
  });

  test('is refused as the place of a branch, of `packed-refs` or of `refs/heads`', async () => {
    const [root, outside] = [await temporaryFolder(), await temporaryFolder()];
    const secret = await bare(outside, 'secret.git');
    const gitDir = await bare(root, 'shop');
    const provider = providerOf({ root });
    await rm(join(gitDir, 'refs/heads/main'));
    await symlink(join(secret, 'refs/heads/main'), join(gitDir, 'refs/heads/main'));
    expect(await failureOf(list(provider, 'shop'))).toMatch(leadsOut);
    await gitIn(secret, 'pack-refs', '--all');
    await rm(join(gitDir, 'refs/heads/main'));
    await symlink(join(secret, 'packed-refs'), join(gitDir, 'packed-refs'));
    expect(await failureOf(list(provider, 'shop'))).toMatch(leadsOut);
    await rm(join(gitDir, 'refs/heads'), { recursive: true });
    await symlink(join(outside, 'secret.git/refs/heads'), join(gitDir, 'refs/heads'));
    expect(await failureOf(list(provider, 'shop'))).toMatch(leadsOut);
  });
});
