import { chmod, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { agents, list, simpleListing, start } from '../support.ts';
import { bare, exists, gitIn, providerOf, script, temporaryFolder } from './support.ts';

/** Creates a repository whose configuration, hooks and attributes make a careless git run programs. Each leaves a file. */
async function trap(root: string): Promise<{ readonly gitDir: string; readonly canaries: string }> {
  const canaries = await temporaryFolder();
  const touch = (name: string): string => `touch '${join(canaries, name)}'`;
  await gitIn(root, 'clone', '--quiet', await bare(await temporaryFolder(), 'origin.git'), 'shop');
  const gitDir = join(root, 'shop/.git');
  await writeFile(
    join(gitDir, 'config'),
    `[core]
	repositoryFormatVersion = 1
	bare = false
	fsmonitor = "${touch('fsmonitor')}; false"
	sshCommand = "${touch('ssh')}"
	pager = "${touch('pager')}"
	editor = "${touch('editor')}"
	hooksPath = hooks
	attributesFile = ${join(root, 'attributes')}
	worktree = /
	alternateRefsCommand = "${touch('alternate-refs')}"
[extensions]
	partialClone = promisor
[remote "promisor"]
	url = "ext::sh -c ${touch('promisor').replaceAll("'", '')}"
	promisor = true
[log]
	showSignature = true
	mailmap = true
	diffMerges = off
[gpg]
	program = ${await script(canaries, touch('gpg'))}
[pager]
	log = "${touch('pager-log')}"
[alias]
	log = "!${touch('alias')}"
	ls-tree = "!${touch('alias')}"
[diff]
	external = "${touch('external-diff')}"
	renames = copies
	orderFile = /missing
[diff "trap"]
	command = "${touch('diff-command')}"
	textconv = "${touch('textconv')}"
[filter "trap"]
	clean = "${touch('clean')}"
	smudge = "${touch('smudge')}"
	process = "${touch('process')}"
	required = true
[include]
	path = ${join(root, 'included')}
`,
  );
  await writeFile(join(root, 'included'), `[core]\n\tfsmonitor = "${touch('included')}"\n[alias]\n\tlog = "!${touch('included')}"\n`);
  await writeFile(join(root, 'attributes'), '* diff=trap filter=trap\n');
  await mkdir(join(gitDir, 'info'), { recursive: true });
  await writeFile(join(gitDir, 'info/attributes'), '* diff=trap filter=trap\n');
  await mkdir(join(gitDir, 'hooks'), { recursive: true });
  const hooks = ['pre-commit', 'post-checkout', 'post-index-change', 'fsmonitor-watchman', 'reference-transaction', 'pre-auto-gc'];
  for (const hook of hooks) {
    await writeFile(join(gitDir, 'hooks', hook), `#!/bin/sh\n${touch(`hook-${hook}`)}\n`);
    await chmod(join(gitDir, 'hooks', hook), 0o755);
  }
  return { gitDir, canaries };
}

async function traces(canaries: string): Promise<string[]> {
  return (await readdir(canaries)).filter((name) => name !== 'fake-git');
}

describe('A hostile repository', () => {
  test('has no effect by its configuration, hooks or attributes', async () => {
    const root = await temporaryFolder();
    const { canaries } = await trap(root);
    const provider = providerOf({ root });
    expect(await list(provider, 'shop')).toEqual(simpleListing);
    expect(await provider.find('shop')).toEqual({ path: 'shop', defaultBranch: 'main' });
    expect(await traces(canaries)).toEqual([]);
  });

  test('does run its programs if git reads its configuration', async () => {
    const root = await temporaryFolder();
    const { gitDir, canaries } = await trap(root);
    const careless = ['-c', 'diff.orderFile=/dev/null', `--git-dir=${gitDir}`, '--work-tree=shop'];
    await gitIn(root, ...careless, 'diff', '--ext-diff', 'HEAD~1', 'HEAD').catch(() => null);
    expect(await traces(canaries)).toEqual(expect.arrayContaining(['process']));
  });

  test('can not change the listing by replaced objects or grafts', async () => {
    const root = await temporaryFolder();
    const gitDir = await bare(root, 'shop');
    const [head, older] = [await gitIn(gitDir, 'rev-parse', 'main'), await gitIn(gitDir, 'rev-parse', 'main~2')];
    await gitIn(gitDir, 'replace', head, older);
    await mkdir(join(gitDir, 'info'), { recursive: true });
    await writeFile(join(gitDir, 'info/grafts'), `${head}\n`);
    expect(await list(providerOf({ root }), 'shop')).toEqual(simpleListing);
  });

  test('can not make git fetch a missing object with a program of its own', async () => {
    const root = await temporaryFolder();
    const { gitDir, canaries } = await trap(root);
    const tree = await gitIn(await bare(root, 'other'), 'rev-parse', `main:${agents}`);
    const object = join(gitDir, 'objects', tree.slice(0, 2), tree.slice(2));
    expect(await exists(object)).toBe(true);
    await chmod(object, 0o600);
    await writeFile(object, '');
    await expect(list(providerOf({ root }), 'shop')).rejects.toMatchObject({ code: 'provider_failed' });
    expect(await traces(canaries)).toEqual([]);
  });

  test('is read by a git that gets no environment variables of the server', async () => {
    const root = await temporaryFolder();
    await bare(root, 'shop');
    const folder = await temporaryFolder();
    const binary = await script(folder, `env > '${join(folder, 'env')}'\nexec git "$@"`);
    process.env['SKEP_TEST_SECRET'] = 'open sesame';
    process.env['GIT_EXTERNAL_DIFF'] = 'false';
    try {
      expect(await list(providerOf({ root, gitBinary: binary }), 'shop')).toEqual(simpleListing);
    } finally {
      delete process.env['SKEP_TEST_SECRET'];
      delete process.env['GIT_EXTERNAL_DIFF'];
    }
    const names = (await readFile(join(folder, 'env'), 'utf8')).split('\n').map((line) => line.split('=')[0] ?? '');
    const ours = /^(?:PATH|LC_ALL|GIT_(?!EXTERNAL)\w+|PWD|OLDPWD|SHLVL|_|)$/u;
    expect(names.filter((name) => !ours.test(name))).toEqual([]);
  });

  test('is read in a temporary folder with mode 700, which is removed', async () => {
    const root = await temporaryFolder();
    await bare(root, 'shop');
    const [folder, temporary] = [await temporaryFolder(), await temporaryFolder()];
    const binary = await script(folder, `stat -c %a . >> '${join(folder, 'modes')}'\nexec git "$@"`);
    const provider = providerOf({ root, gitBinary: binary, temporaryFolder: temporary });
    expect(await list(provider, 'shop')).toEqual(simpleListing);
    expect(new Set((await readFile(join(folder, 'modes'), 'utf8')).trim().split('\n'))).toEqual(new Set(['700']));
    expect(await readdir(temporary)).toEqual([]);
  });

  test('has the last second of the year 9999 instead of any later date', async () => {
    const root = await temporaryFolder();
    await bare(root, 'shop', { commits: [{ id: 'late', at: 999_999_999_999_999, files: [[`${agents}/a.md`, '1']] }] });
    const [entry] = await list(providerOf({ root }), 'shop');
    expect(new Date((entry?.[1] ?? start) * 1000).toISOString()).toBe('9999-12-31T23:59:59.000Z');
  });
});
