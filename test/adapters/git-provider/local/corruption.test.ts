import { execFile } from 'node:child_process';
import { chmod, mkdir, readdir, readFile, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { agents, everything, failureOf, list, simpleListing, start } from '../support.ts';
import { bare, gitIn, providerOf, script, temporaryFolder } from './support.ts';

const damaged = /^provider_failed: .*missing or corrupt/u;
const run = promisify(execFile);

async function objectPath(gitDir: string, name: string): Promise<string> {
  const oid = await gitIn(gitDir, 'rev-parse', name);
  return join(gitDir, 'objects', oid.slice(0, 2), oid.slice(2));
}

describe('A corrupt repository', () => {
  test.each([
    ['the first commit', 'main~2'],
    ['the last commit', 'main'],
    ['the tree of an old commit', 'main~1^{tree}'],
    ['the directory', `main:${agents}`],
    ['a directory below it', `main:${agents}/deploy`],
  ])('fails with `provider_failed` if %s is missing, empty or no git object', async (_, name) => {
    const root = await temporaryFolder();
    const gitDir = await bare(root, 'shop');
    const object = await objectPath(gitDir, name);
    await chmod(object, 0o600);
    for (const damage of [() => writeFile(object, 'rubbish'), () => truncate(object, 0), () => rm(object)]) {
      await damage();
      expect(await failureOf(list(providerOf({ root }), 'shop'))).toMatch(damaged);
    }
  });

  test('fails with `provider_failed` if a pack is truncated', async () => {
    const root = await temporaryFolder();
    const gitDir = await bare(root, 'shop');
    await gitIn(gitDir, 'gc', '--quiet');
    const { stdout } = await run('find', [join(gitDir, 'objects/pack'), '-name', '*.pack']);
    await chmod(stdout.trim(), 0o600);
    await truncate(stdout.trim(), 100);
    expect(await failureOf(list(providerOf({ root }), 'shop'))).toMatch(damaged);
  });

  test('fails with `provider_failed` if the branch refers to a blob', async () => {
    const root = await temporaryFolder();
    const gitDir = await bare(root, 'shop');
    const blob = await gitIn(gitDir, 'rev-parse', 'main:src/x');
    await writeFile(join(gitDir, 'refs/heads/main'), `${blob}\n`);
    expect(await failureOf(list(providerOf({ root }), 'shop'))).toMatch(/^provider_failed: /u);
  });

  test.each([
    ['a truncated branch', 'refs/heads/main', '0123456789abcdef\n'],
    ['an empty branch', 'refs/heads/main', ''],
    ['an empty HEAD', 'HEAD', ''],
    ['a HEAD that names no ref', 'HEAD', 'ref: config\n'],
    ['a HEAD that points out of `refs`', 'HEAD', 'ref: refs/../../../secret\n'],
    ['a HEAD with bytes that are not UTF-8', 'HEAD', Buffer.from([...Buffer.from('ref: refs/heads/'), 0xff, 0x0a])],
    ['a branch that refers to itself', 'refs/heads/main', 'ref: refs/heads/main\n'],
    ['an invalid list of shallow commits', 'shallow', 'rubbish\n'],
    ['a HEAD that is too large', 'HEAD', 'x'.repeat(100_000)],
    ['alternates that are missing', 'objects/info/alternates', '/missing\n'],
  ])('fails with `provider_failed` with %s', async (_, file, content) => {
    const root = await temporaryFolder();
    const gitDir = await bare(root, 'shop');
    await mkdir(join(gitDir, 'objects/info'), { recursive: true });
    await writeFile(join(gitDir, file), content);
    expect(await failureOf(list(providerOf({ root }), 'shop'))).toMatch(/^provider_failed: /u);
  });

  test.each(['HEAD', 'refs/heads/main', 'packed-refs', 'shallow', 'commondir', 'objects/info/alternates'])(
    'fails with `provider_failed` if %s is a named pipe',
    async (file) => {
      const root = await temporaryFolder();
      const gitDir = await bare(root, 'shop');
      if (file === 'packed-refs') await rm(join(gitDir, 'refs/heads/main'));
      await rm(join(gitDir, file), { force: true });
      await mkdir(join(gitDir, 'objects/info'), { recursive: true });
      await run('mkfifo', [join(gitDir, file)]);
      expect(await failureOf(list(providerOf({ root }), 'shop'))).toMatch(/^provider_failed: .*regular file/u);
    },
  );

  test('fails with `provider_failed` if the branch is a symbolic link to itself', async () => {
    const root = await temporaryFolder();
    const gitDir = await bare(root, 'shop');
    await rm(join(gitDir, 'refs/heads/main'));
    await symlink('main', join(gitDir, 'refs/heads/main'));
    expect(await failureOf(list(providerOf({ root }), 'shop'))).toMatch(/^provider_failed: .*leads nowhere/u);
  });

  test('fails on every request until it is repaired', async () => {
    const root = await temporaryFolder();
    const gitDir = await bare(root, 'shop');
    const object = await objectPath(gitDir, 'main~2');
    const content = await readFile(object);
    await rm(object);
    const provider = providerOf({ root });
    for (let time = 0; time < 2; time += 1) expect(await failureOf(list(provider, 'shop'))).toMatch(damaged);
    await writeFile(object, content);
    expect(await list(provider, 'shop')).toEqual(simpleListing);
  });
});

describe('readFile()', () => {
  test('fails with `provider_failed` for a corrupt blob, and with `file_not_found` for a missing one', async () => {
    const root = await temporaryFolder();
    const gitDir = await bare(root, 'shop');
    const provider = providerOf({ root });
    const { files: [file] } = await provider.listFiles('shop', everything);
    const object = join(gitDir, 'objects', file!.blobId.slice(0, 2), file!.blobId.slice(2));
    await chmod(object, 0o600);
    for (const damage of [() => writeFile(object, 'rubbish'), () => truncate(object, 0)]) {
      await damage();
      expect(await failureOf(provider.readFile('shop', file!, 100))).toMatch(damaged);
    }
    await rm(object);
    expect(await failureOf(provider.readFile('shop', file!, 100))).toMatch(/^file_not_found: /u);
  });

  test('does not read a file that is too large, and leaves no temporary files', async () => {
    const [root, temporary] = [await temporaryFolder(), await temporaryFolder()];
    await bare(root, 'shop', { commits: [{ id: 'x', at: start, files: [[`${agents}/a.md`, 'x'.repeat(1000)]] }] });
    const log = join(await temporaryFolder(), 'log');
    const gitBinary = await script(await temporaryFolder(), `echo "$@" >> '${log}'\nexec git "$@"`);
    const provider = providerOf({ root, gitBinary, temporaryFolder: temporary });
    const { files: [file] } = await provider.listFiles('shop', everything);
    expect(await failureOf(provider.readFile('shop', file!, 999))).toMatch(/^provider_failed: .*too_large/u);
    expect(await readFile(log, 'utf8')).not.toContain('cat-file blob');
    expect(String(await provider.readFile('shop', file!, 1000))).toBe('x'.repeat(1000));
    expect(await readFile(log, 'utf8')).toContain('cat-file blob');
    await provider.close();
    expect(await readdir(temporary)).toEqual([]);
  });
});

describe('A listing', () => {
  test('fails with too many paths, now or in the past, or with too many bytes', async () => {
    const root = await temporaryFolder();
    const paths = Array.from({ length: 20 }, (_, index) => `${agents}/${index}.md`);
    await bare(root, 'now', { commits: [{ id: 'all', at: start, files: paths.map((path) => [path, 'x']) }] });
    await bare(root, 'past', {
      commits: [
        { id: 'all', at: start, files: paths.map((path) => [path, 'x']) },
        { id: 'few', at: start + 1, files: paths.slice(1).map((path) => [path, null]) },
      ],
    });
    for (const name of ['now', 'past']) {
      expect(await failureOf(list(providerOf({ root, maxPaths: 19 }), name))).toMatch(/^provider_failed: .*too_large.*19 paths/u);
      expect(await list(providerOf({ root, maxPaths: 20 }), name)).toHaveLength(name === 'now' ? 20 : 1);
    }
    const small = providerOf({ root, maxOutputBytes: 100 });
    expect(await failureOf(list(small, 'now'))).toMatch(/^provider_failed: .*too_large.*100 bytes/u);
  });
});

describe('A listing fails with `provider_failed`', () => {
  test('if git is not installed', async () => {
    const root = await temporaryFolder();
    await bare(root, 'shop');
    const provider = providerOf({ root, gitBinary: join(root, 'no-git') });
    expect(await failureOf(list(provider, 'shop'))).toMatch(/^provider_failed: .*install git/u);
    expect(await provider.check()).toMatchObject({ ok: false, detail: expect.stringContaining('install git') });
  });

  test('if git is not executable', async () => {
    const root = await temporaryFolder();
    await bare(root, 'shop');
    await writeFile(join(root, 'text'), 'x');
    const provider = providerOf({ root, gitBinary: join(root, 'text') });
    expect(await failureOf(list(provider, 'shop'))).toMatch(/^provider_failed: .*can not be started/u);
  });

  test('if git is killed or exits with an error, and does not show stderr of git', async () => {
    const root = await temporaryFolder();
    await bare(root, 'shop');
    const killed = await script(await temporaryFolder(), 'kill -9 $$');
    expect(await failureOf(list(providerOf({ root, gitBinary: killed }), 'shop'))).toMatch(/^provider_failed: .*killed/u);
    const failing = await script(await temporaryFolder(), 'echo "fatal: the secret is 42" >&2; exit 3');
    const message = await failureOf(list(providerOf({ root, gitBinary: failing }), 'shop'));
    expect(message).toMatch(/^provider_failed: /u);
    expect(message).not.toContain('42');
  });
});
