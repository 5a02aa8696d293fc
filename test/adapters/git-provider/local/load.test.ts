import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { everything, failureOf, list, simpleListing } from '../support.ts';
import { until } from '../../../support/until.ts';
import { bare, countedGit, exists, gitIn, providerOf, script, temporaryFolder } from './support.ts';

/** A git that hangs if the repository has the file `hang` beside its objects. `pids` returns its process ids. */
async function hangingGit(): Promise<{ readonly binary: string; readonly pids: () => Promise<number[]> }> {
  const folder = await temporaryFolder();
  const log = join(folder, 'pids');
  const body = `if [ -e "$GIT_OBJECT_DIRECTORY/../hang" ]; then echo $$ >> '${log}'; exec sleep 600; fi\nexec git "$@"`;
  const pids = async (): Promise<number[]> =>
    (await exists(log)) ? (await readFile(log, 'utf8')).trim().split('\n').map(Number) : [];
  return { binary: await script(folder, body), pids };
}

async function hang(gitDir: string): Promise<void> {
  await writeFile(join(gitDir, 'hang'), '');
}

async function allGone(pids: readonly number[]): Promise<boolean> {
  const states = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/stat`, 'utf8').catch(() => ') X ')));
  return states.every((state) => /\) [XZ] /u.test(state));
}

describe('A listing with a git that hangs', () => {
  test('fails with `provider_timeout` at the time limit, and git is killed', async () => {
    const root = await temporaryFolder();
    await hang(await bare(root, 'slow'));
    const { binary, pids } = await hangingGit();
    const provider = providerOf({ root, gitBinary: binary, timeoutMs: 500 });
    expect(await failureOf(list(provider, 'slow'))).toBe(
      'provider_timeout: {"provider":"local","limitMs":500}',
    );
    await provider.close();
    expect(await pids()).toHaveLength(2);
    expect(await allGone(await pids())).toBe(true);
  });

  test('does not block the listings of other repositories', async () => {
    const root = await temporaryFolder();
    await hang(await bare(root, 'slow'));
    for (const name of ['a', 'b', 'c']) await bare(root, name);
    const { binary, pids } = await hangingGit();
    const provider = providerOf({ root, gitBinary: binary, concurrency: 2 });
    const leaving = new AbortController();
    const directories = ['one', 'two', 'three', 'three'];
    const slow = Promise.allSettled(
      directories.map((directory) =>
        provider.listFiles('slow', { ...everything, directory: () => directory }, leaving.signal),
      ),
    );
    await until(pids, ({ length }) => length === 2);
    for (const name of ['a', 'b', 'c']) expect(await list(provider, name)).toEqual(simpleListing);
    expect(await pids()).toHaveLength(2);
    const reason = new Error('left');
    leaving.abort(reason);
    expect(await slow).toEqual(directories.map(() => ({ status: 'rejected', reason })));
    await until(async () => allGone(await pids()), (gone) => gone);
  });

  test('makes the next one wait for a free slot, where the caller can abort', async () => {
    const root = await temporaryFolder();
    const slow = await bare(root, 'slow');
    await hang(slow);
    await bare(root, 'waiting');
    const { binary, pids } = await hangingGit();
    const provider = providerOf({ root, gitBinary: binary, concurrency: 1, timeoutMs: 3000 });
    const first = failureOf(list(provider, 'slow'));
    await until(pids, ({ length }) => length > 0);
    const controller = new AbortController();
    const second = list(provider, 'waiting', controller.signal);
    controller.abort(new Error('left while waiting'));
    await expect(second).rejects.toThrow('left while waiting');
    expect(await first).toMatch(/^provider_timeout: /u);
    expect(await list(provider, 'waiting')).toEqual(simpleListing);
  });

  test('fails when the provider closes, and so does every later one', async () => {
    const root = await temporaryFolder();
    await hang(await bare(root, 'slow'));
    const { binary, pids } = await hangingGit();
    const provider = providerOf({ root, gitBinary: binary });
    const running = failureOf(list(provider, 'slow'));
    await until(pids, ({ length }) => length === 2);
    await provider.close();
    expect(await allGone(await pids())).toBe(true);
    expect(await running).toMatch(/^provider_failed: .*closed/u);
    expect(await failureOf(list(provider, 'slow'))).toMatch(/^provider_failed: .*closed/u);
    expect(await provider.check()).toMatchObject({ ok: false });
  });
});

test('a listing does not wait for processes that a wrapper of git left', async () => {
  const root = await temporaryFolder();
  await bare(root, 'shop');
  const folder = await temporaryFolder();
  const log = join(folder, 'pids');
  const binary = await script(folder, `sleep 20 & echo $! >> '${log}'; wait`);
  const provider = providerOf({ root, gitBinary: binary, timeoutMs: 500 });
  expect(await failureOf(list(provider, 'shop'))).toMatch(/^provider_timeout: /u);
  await provider.close();
  const left = (await exists(log)) ? (await readFile(log, 'utf8')).trim().split('\n') : [];
  for (const pid of left) process.kill(Number(pid), 'SIGKILL');
});

describe('Equal listings at the same time', () => {
  test('start git as often for 100 callers as for one', async () => {
    const root = await temporaryFolder();
    await bare(root, 'shop');
    const git = await countedGit();
    const provider = providerOf({ root, gitBinary: git.binary });
    const answers = await Promise.all(Array.from({ length: 100 }, () => list(provider, 'shop')));
    for (const answer of answers) expect(answer).toEqual(simpleListing);
    expect(await git.count()).toBe(2);
  });

  test('continue for the other callers if one aborts', async () => {
    const root = await temporaryFolder();
    const gitDir = await bare(root, 'shop');
    const folder = await temporaryFolder();
    const [waiting, gate] = [join(folder, 'waiting'), join(gitDir, 'gate')];
    await writeFile(gate, '');
    const binary = await script(
      folder,
      `touch '${waiting}'; while [ -e "$GIT_OBJECT_DIRECTORY/../gate" ]; do sleep 0.01; done; exec git "$@"`,
    );
    const provider = providerOf({ root, gitBinary: binary });
    const controller = new AbortController();
    const leaving = list(provider, 'shop', controller.signal);
    const staying = list(provider, 'shop');
    await until(() => exists(waiting), (there) => there);
    controller.abort(new Error('left'));
    await expect(leaving).rejects.toThrow('left');
    await rm(gate);
    expect(await staying).toEqual(simpleListing);
  });
});

describe('A listing', () => {
  test('starts no git process if nothing changed, also if the query accepts other files', async () => {
    const root = await temporaryFolder();
    await bare(root, 'shop');
    const git = await countedGit();
    const provider = providerOf({ root, gitBinary: git.binary });
    expect(await list(provider, 'shop')).toEqual(simpleListing);
    expect(await list(provider, 'shop')).toEqual(simpleListing);
    const some = await provider.listFiles('shop', { ...everything, accepts: (path) => path === 'a.md' });
    expect(some.files).toHaveLength(1);
    expect(await git.count()).toBe(2);
  });

  test('does not wait for the history if the directory does not exist', async () => {
    const root = await temporaryFolder();
    await bare(root, 'shop');
    const folder = await temporaryFolder();
    const binary = await script(folder, `[ "$1" = log ] && exec sleep 600\nexec git "$@"`);
    const provider = providerOf({ root, gitBinary: binary });
    const missing = { directory: () => 'missing', accepts: () => true };
    expect((await provider.listFiles('shop', missing)).files).toEqual([]);
  });

  test('reads only the new part of the history after a new commit', async () => {
    const root = await temporaryFolder();
    const gitDir = await bare(root, 'shop');
    const folder = await temporaryFolder();
    const log = join(folder, 'log');
    const binary = await script(folder, `echo "$@" >> '${log}'\nexec git "$@"`);
    const provider = providerOf({ root, gitBinary: binary });
    expect(await list(provider, 'shop')).toEqual(simpleListing);
    const before = await gitIn(gitDir, 'rev-parse', 'HEAD');
    const tree = await gitIn(gitDir, 'rev-parse', 'HEAD^{tree}');
    const after = await gitIn(gitDir, 'commit-tree', '-p', 'HEAD', '-m', 'new', tree);
    await gitIn(gitDir, 'update-ref', 'HEAD', after);
    await writeFile(log, '');
    expect(await list(provider, 'shop')).toEqual(simpleListing);
    const commands = (await readFile(log, 'utf8')).trim().split('\n');
    expect(commands).toHaveLength(2);
    expect(commands.find((command) => command.startsWith('log '))).toContain(`${before}...${after}`);
  });

  test('is correct if the commit of the last listing was removed', async () => {
    const root = await temporaryFolder();
    const gitDir = await bare(root, 'shop');
    const provider = providerOf({ root });
    expect(await list(provider, 'shop')).toEqual(simpleListing);
    await gitIn(gitDir, 'update-ref', 'refs/heads/main', 'main~2');
    await gitIn(gitDir, 'gc', '--quiet', '--prune=now');
    expect(await list(provider, 'shop')).toEqual(simpleListing.slice(0, 1));
  });

  test.each([{ cacheEntries: 1 }, { cachePaths: 2 }, { cacheEntries: 0 }, { cachePaths: 0 }])('keeps no more in the cache than %o', async (bound) => {
    const root = await temporaryFolder();
    for (const name of ['a', 'b']) await bare(root, name);
    const git = await countedGit();
    const provider = providerOf({ root, gitBinary: git.binary, ...bound });
    for (const name of ['a', 'b', 'a']) expect(await list(provider, name)).toEqual(simpleListing);
    expect(await git.count()).toBe(6);
  });
});
