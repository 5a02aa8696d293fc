import { execFileSync, spawnSync } from 'node:child_process';
import { appendFile, mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { inspect } from 'node:util';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createLocalGitProvider } from '../../../../src/adapters/git-provider/local/index.ts';
import type { GitMirrorOptions } from '../../../../src/adapters/repository-checkouts/git-mirror/index.ts';
import { neverAborts } from '../../../../src/ports/abort-signals.ts';
import type { RepositoryDescription } from '../../../contracts/git-repository.ts';
import { runGit } from '../../../contracts/work-tree.ts';
import { list, reasonOf, receive, take, takeWithNewFile } from './snapshot-support.ts';
import { authorization, commits, createScene, mirrorOf, open, publish, temporaryFolder, token } from './support.ts';

/** Makes the host run a script before it accepts a push. Returns its path. */
async function addHook(served: string, script: string): Promise<string> {
  const hook = join(served, 'acme/shop.git/hooks/pre-receive');
  await mkdir(dirname(hook));
  await writeFile(hook, script, { mode: 0o755 });
  return hook;
}

describe('A push', () => {
  const change = { author: { name: 'Ann', email: 'ann@example.com' }, message: 'Work\n', at: 0 };

  /** A work tree with a new file, and its snapshot with a commit of it. */
  async function committed({ description, options, author = change.author }: {
    readonly description?: RepositoryDescription; readonly options?: Partial<GitMirrorOptions>; readonly author?: typeof change.author;
  } = {}) {
    const scene = await createScene(description);
    const mirror = scene.mirror(options);
    const { tree, snapshot } = await takeWithNewFile(mirror, scene.request);
    return { scene, mirror, tree, snapshot, commit: await snapshot.commit({ ...change, author }, neverAborts) };
  }

  test('is refused by a hook of the host or for a read-only credential, and does not show it', async () => {
    const { scene, mirror, tree, snapshot: taken, commit } = await committed();
    await using snapshot = taken;
    const request = { ...scene.request, branch: 'skep/one' };
    const push = (): Promise<void> => snapshot.push({ request, commit, expected: null }, neverAborts);
    const hook = await addHook(scene.served, '#!/bin/sh\nexit 1\n');
    expect(await reasonOf(push())).toEqual({ code: 'host_refused', message: 'pre-receive hook declined' });
    await rm(hook);
    scene.host.interceptor = (asked, response) => {
      if (!asked.path.endsWith('/info/refs')) return false;
      response.writeHead(403, { 'content-type': 'text/plain' }).end(`${asked.authorization} may not\n`);
      return true;
    };
    const error = await push().then(() => null, (error: unknown) => error);
    expect(error).toMatchObject({ reason: { code: 'push_forbidden', message: '*** may not' } });
    expect(inspect(error, { depth: 10 })).not.toContain(token);
    scene.host.interceptor = null;
    await push();
    expect((await mirror.findBranch(request, neverAborts)).commit).toBe(commit);
    // Neither the work tree nor the folder on this machine ever had the credential.
    for (const folder of [tree.folder, scene.root]) expect(spawnSync('grep', ['-rqF', token, folder]).status).toBe(1);
    expect(spawnSync('grep', ['-rqF', authorization.split(' ')[1] ?? '', scene.root]).status).toBe(1);
  });

  test.each([
    // The texts of GitHub's and GitLab's documentation of push rules.
    ['host_refused', ['error: GH013: Repository rule violations found for refs/heads/x.', '', '- Commits must have verified signatures.']],
    ['host_refused', ['GitLab: Commit message does not follow the pattern']],
    ['branch_protected', ['error: GH006: Protected branch update failed for refs/heads/x.']],
    ['branch_protected', ['GitLab: You are not allowed to push code to protected branches on this project.']],
  ])('shows why the host refuses it, on one line and without secrets: %s, %j', async (code, lines) => {
    const { scene, snapshot: taken, commit } = await committed();
    await using snapshot = taken;
    const hostile = [`\u001b[31m${token}\u0007`, 'https://me:password@example.com', 'é'.repeat(2000)];
    const script = ['#!/bin/sh', 'cat <<"END"', ...lines, ...hostile, 'END', 'exit 1', ''].join('\n');
    await addHook(scene.served, script);
    const push = snapshot.push({ request: { ...scene.request, branch: 'skep/one' }, commit, expected: null }, neverAborts);
    const shown = [...lines.filter((line) => line !== ''), '***', 'https://me:**********@example.com', 'é'].join(' ');
    const reason = await reasonOf(push);
    expect(reason).toEqual({ code, message: expect.stringContaining(shown) });
    expect(Buffer.byteLength(JSON.stringify(reason))).toBeLessThan(1100);
  });

  test('is forbidden if the repository belongs to another user of this machine', async () => {
    // Root may write everywhere, so a program writes what git does.
    const gitBinary = join(await temporaryFolder(), 'git-as-another-user');
    const refusal = `echo 'error: remote unpack failed: unable to create temporary object directory' >&2; printf '!\\tx:y\\t[remote rejected] (unpacker error)\\n'`;
    await writeFile(gitBinary, `#!/bin/sh\ncase " $* " in *' push '*) ${refusal}; exit 1 ;; esac\nexec git "$@"\n`, { mode: 0o755 });
    const { scene, snapshot: taken, commit } = await committed({ options: { gitBinary } });
    await using snapshot = taken;
    const push = snapshot.push({ request: { ...scene.request, branch: 'skep/one' }, commit, expected: null }, neverAborts);
    expect(await reasonOf(push)).toMatchObject({ code: 'push_forbidden' });
  });

  test('is refused if the name is too long, if it conflicts with another branch, or if another program has locked the branch', async () => {
    const description = { commits: commits(1), branches: { main: 'c0', 'topic/part': 'c0' } };
    const { scene, snapshot: taken, commit } = await committed({ description });
    await using snapshot = taken;
    const push = (branch: string): Promise<void> => snapshot.push({ request: { ...scene.request, branch }, commit, expected: null }, neverAborts);
    for (const branch of ['topic', 'topic/part/more']) expect(await reasonOf(push(branch))).toEqual({ code: 'branch_name_conflict' });
    expect(await reasonOf(push('x'.repeat(251)))).toEqual({ code: 'branch_name_too_long' });
    const lock = join(scene.served, 'acme/shop.git/refs/heads/one.lock');
    await writeFile(lock, '');
    expect(await reasonOf(push('one'))).toEqual({ code: 'locked' });
    await rm(lock);
    await push('one');
  });

  test.each(['...', ' "<>" '])('of a commit whose author has a name that git does not take has the address instead: %s', async (name) => {
    const { scene, mirror, snapshot: taken, commit } = await committed({ author: { ...change.author, name } });
    await using snapshot = taken;
    await snapshot.push({ request: { ...scene.request, branch: 'skep/one' }, commit, expected: null }, neverAborts);
    const pushed = await open(mirror, { ...scene.request, branch: 'skep/one' });
    expect(await pushed.git('log', '-1', '--format=%an <%ae>')).toBe('ann@example.com <ann@example.com>');
  });

  test('is refused if an object of the commits is missing', async () => {
    const scene = await createScene();
    const mirror = scene.mirror();
    const tree = await open(mirror, scene.request);
    const git = (args: readonly string[], input?: string): string => execFileSync('git', ['-C', tree.folder, ...args], { input, encoding: 'utf8' }).trim();
    const missing = git(['mktree', '--missing'], `100644 blob ${'1'.repeat(40)}\tmissing\n`);
    const head = git(['-c', 'user.name=A', '-c', 'user.email=a@example.com', 'commit-tree', missing, '-p', tree.commit ?? '', '-m', 'missing']);
    const input = [head, missing, tree.commit, git(['rev-parse', 'HEAD^{tree}'])].join('\n');
    const pack = execFileSync('git', ['-C', tree.folder, 'pack-objects', '-q', '--stdout'], { input });
    await using snapshot = await receive(mirror, tree.commit, [`snapshot ${head} ${missing} 1 ${tree.commit}\n`, new Uint8Array(pack)]);
    const request = { ...scene.request, branch: 'skep/one' };
    const before = scene.host.requests.length;
    expect(await reasonOf(snapshot.push({ request, commit: await snapshot.commit(change, neverAborts), expected: null }, neverAborts))).toEqual({ code: 'history_incomplete' });
    expect(scene.host.requests).toHaveLength(before);
  });

  test.each([
    ['was killed', 'kill -9 $$', { code: 'explained', message: expect.stringContaining('git was killed') }],
    ['has no space', 'echo "fatal: No space left on device" >&2; exit 128', { code: 'disk_full' }],
  ])('fails, but does not blame the history, if the git that looks for its objects %s', async (_, action, reason) => {
    const gitBinary = join(await temporaryFolder(), 'git');
    await writeFile(gitBinary, `#!/bin/sh\ncase " $* " in *" rev-list --objects --quiet "*) ${action};; esac\nexec git "$@"\n`, { mode: 0o755 });
    const { scene, snapshot: taken, commit } = await committed({ options: { gitBinary } });
    await using snapshot = taken;
    const pushing = snapshot.push({ request: { ...scene.request, branch: 'skep/one' }, commit, expected: null }, neverAborts);
    await expect(pushing).rejects.toMatchObject({ code: 'provider_failed', context: { reason } });
  });

  test.each([['shallow', '--depth=1'], ['partial', '--filter=blob:none']])('is refused if a %s history was merged', async (_, limit) => {
    const scene = await createScene();
    const mirror = scene.mirror();
    const tree = await open(mirror, scene.request);
    const other = join(await temporaryFolder(), 'other');
    execFileSync('git', ['init', '-q', other]);
    await runGit(other, ['config', 'uploadpack.allowFilter', 'true']);
    for (const content of ['one', 'two']) {
      await writeFile(join(other, 'other'), content);
      await runGit(other, ['add', '-A']);
      await runGit(other, ['commit', '-q', '-m', content]);
    }
    await tree.git('remote', 'add', 'other', `file://${other}`);
    await tree.git('fetch', '-q', limit, 'other', 'HEAD');
    await tree.git('merge', '-q', '--allow-unrelated-histories', '-m', 'merge', 'FETCH_HEAD');
    expect(await list(mirror, tree)).toMatchObject({ complete: true, files: [{ path: 'other' }] });
    const pushing = async (): Promise<void> => {
      await using snapshot = await take(mirror, tree);
      const commit = await snapshot.commit(change, neverAborts);
      await snapshot.push({ request: { ...scene.request, branch: 'skep/one' }, commit, expected: null }, neverAborts);
    };
    expect(await reasonOf(pushing())).toEqual({ code: 'history_incomplete' });
  });

  test.each(['shop', 'linked'])('does not move a branch that is checked out in a work tree of a local repository: %s', async (repository) => {
    const served = await temporaryFolder();
    const git = (folder: string, ...args: string[]): string => execFileSync('git', ['-C', join(served, folder), ...args], { encoding: 'utf8' }).trim();
    const description = { commits: commits(1), branches: { main: 'c0', own: 'c0', other: 'c0', free: 'c0' } };
    await rename(await publish(served, 'bare', description), join(served, 'bare'));
    git('.', 'clone', '--quiet', 'bare', 'shop');
    for (const branch of ['own', 'other', 'free']) git('shop', 'branch', '--quiet', branch, 'main');
    git('shop', 'worktree', 'add', '--quiet', '../linked', 'own');
    git('shop', 'worktree', 'add', '--quiet', '../second', 'other');
    // The configuration of the repository can not allow it.
    await appendFile(join(served, 'shop/.git/config'), '[receive]\n\tdenyCurrentBranch = ignore\n');
    const provider = createLocalGitProvider({ root: served, temporaryFolder: await temporaryFolder() });
    onTestFinished(() => provider.close());
    const request = { provider: 'local', repository, remote: await provider.remote(repository, neverAborts) };
    const mirror = mirrorOf(join(await temporaryFolder(), 'mirrors'));
    const tree = await open(mirror, { ...request, branch: null });
    await writeFile(join(tree.folder, 'new'), 'new\n');
    await using snapshot = await take(mirror, tree);
    const commit = await snapshot.commit(change, neverAborts);
    const push = (branch: string): Promise<void> => snapshot.push({ request: { ...request, branch }, commit, expected: tree.commit }, neverAborts);
    for (const branch of ['main', 'own', 'other']) expect([branch, await reasonOf(push(branch))]).toEqual([branch, { code: 'branch_checked_out' }]);
    // A branch that is checked out only now, and one that is no longer checked out.
    git('second', 'checkout', '--quiet', 'free');
    expect(await reasonOf(push('free'))).toEqual({ code: 'branch_checked_out' });
    await push('other');
    // During a rebase, HEAD is detached.
    git('shop', 'checkout', '--quiet', '-b', 'rebased');
    spawnSync('git', ['-C', join(served, 'shop'), '-c', 'user.name=A', '-c', 'user.email=a@example.com', 'rebase', '--quiet', '--root', '--exec', 'false']);
    expect(git('shop', 'rev-parse', '--abbrev-ref', 'HEAD')).toBe('HEAD');
    expect(await reasonOf(push('rebased'))).toEqual({ code: 'branch_checked_out' });
    expect(git('second', 'rev-parse', 'main', 'own', 'free', 'other').split('\n')).toEqual([tree.commit, tree.commit, tree.commit, commit]);
    expect(git('second', 'status', '--porcelain')).toBe('');
  });

  test.each([['work tree', 'branch_checked_out'], ['bare', null]] as const)('creates the first branch of an empty local repository only if it is bare: %s', async (kind, code) => {
    const served = await temporaryFolder();
    execFileSync('git', ['init', '--quiet', '--initial-branch=main', ...(kind === 'bare' ? ['--bare'] : []), join(served, 'empty')]);
    const provider = createLocalGitProvider({ root: served, temporaryFolder: await temporaryFolder() });
    onTestFinished(() => provider.close());
    const request = { provider: 'local', repository: 'empty', remote: await provider.remote('empty', neverAborts), branch: 'main' };
    const mirror = mirrorOf(join(await temporaryFolder(), 'mirrors'));
    const tree = await open(mirror, { ...request, branch: null });
    await writeFile(join(tree.folder, 'new'), 'new\n');
    await using snapshot = await take(mirror, tree);
    const push = snapshot.push({ request, commit: await snapshot.commit(change, neverAborts), expected: null }, neverAborts);
    if (code === null) await push;
    else expect(await reasonOf(push)).toEqual({ code });
  });
});
