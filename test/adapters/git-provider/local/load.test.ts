import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { everything, failureOf, list, simpleListing } from '../support.ts';
import { until } from '../../../support/until.ts';
import { bare, countedGit, exists, gitIn, providerOf, script, temporaryFolder } from './support.ts';

/** Git that hangs for the one repository with the file `hang` beside its objects, and tells the number of its process. */
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

describe('a listing has a time limit, and does not block others', () => {
  test('a git that hangs is ended at the limit', async () => {
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

  test('many requests for a slow repository leave room for the others', async () => {
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

  test('waiting for a slot counts, and who waits is served in turn', async () => {
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

  test('closing ends what runs, and refuses what comes', async () => {
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

test('what a wrapper of git leaves behind is not waited for', async () => {
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

describe('equal requests share one run', () => {
  test('a hundred at once are one cold listing', async () => {
    const root = await temporaryFolder();
    await bare(root, 'shop');
    const git = await countedGit();
    const provider = providerOf({ root, gitBinary: git.binary });
    const answers = await Promise.all(Array.from({ length: 100 }, () => list(provider, 'shop')));
    for (const answer of answers) expect(answer).toEqual(simpleListing);
    expect(await git.count()).toBe(2);
  });

  test('a caller that leaves does not end the run of the others', async () => {
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

describe('what is known is not read again', () => {
  test('no git process runs where nothing has changed, whatever is asked of it', async () => {
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

  test('where the directory is empty, the history is not waited for', async () => {
    const root = await temporaryFolder();
    await bare(root, 'shop');
    const folder = await temporaryFolder();
    const binary = await script(folder, `[ "$1" = log ] && exec sleep 600\nexec git "$@"`);
    const provider = providerOf({ root, gitBinary: binary });
    const missing = { directory: () => 'missing', accepts: () => true };
    expect((await provider.listFiles('shop', missing)).files).toEqual([]);
  });

  test('after a new commit only the difference of the histories is asked for', async () => {
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

  test('a commit that is gone since is no obstacle', async () => {
    const root = await temporaryFolder();
    const gitDir = await bare(root, 'shop');
    const provider = providerOf({ root });
    expect(await list(provider, 'shop')).toEqual(simpleListing);
    await gitIn(gitDir, 'update-ref', 'refs/heads/main', 'main~2');
    await gitIn(gitDir, 'gc', '--quiet', '--prune=now');
    expect(await list(provider, 'shop')).toEqual(simpleListing.slice(0, 1));
  });

  test.each([{ cacheEntries: 1 }, { cachePaths: 2 }, { cacheEntries: 0 }])('no more than %o is kept', async (bound) => {
    const root = await temporaryFolder();
    for (const name of ['a', 'b']) await bare(root, name);
    const git = await countedGit();
    const provider = providerOf({ root, gitBinary: git.binary, ...bound });
    for (const name of ['a', 'b', 'a']) expect(await list(provider, name)).toEqual(simpleListing);
    expect(await git.count()).toBe(6);
  });
});
