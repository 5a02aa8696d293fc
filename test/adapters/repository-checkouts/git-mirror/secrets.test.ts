import { readdir, readFile, readlink, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { inspect } from 'node:util';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { neverAborts } from '../../../../src/ports/abort-signals.ts';
import { authorization, createScene, open, temporaryFolder, token, noProgress } from './support.ts';

const secrets = [token, authorization, authorization.slice('Basic '.length), encodeURIComponent(token)];

/** Returns the files below a folder that hold any part of the credential. */
async function holders(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const contents = await Promise.all(paths.map(async (path) => [path, await readFile(path)] as const));
  return contents.filter(([, content]) => secrets.some((secret) => content.includes(secret))).map(([path]) => path);
}

/** Returns the arguments of every process whose working directory is below the folder. */
async function argumentsIn(folder: string): Promise<string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/u.test(name));
  const all = pids.map(async (pid) => {
    const cwd = await readlink(`/proc/${pid}/cwd`).catch(() => '');
    return cwd.startsWith(folder) ? await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '') : '';
  });
  return (await Promise.all(all)).filter((line) => line !== '');
}

describe('The credential', () => {
  test('is in no argument of a git process and in no file', async () => {
    const scene = await createScene();
    const seen: string[] = [];
    const found: string[] = [];
    scene.host.interceptor = async () => {
      seen.push(...(await argumentsIn(scene.root)));
      found.push(...(await holders(scene.root)));
      return false;
    };
    const mirror = scene.mirror();
    const { archive } = await mirror.checkOut(scene.request, noProgress, neverAborts);
    const bytes = await buffer(archive);
    expect(scene.host.requests.every((request) => request.authorization === authorization)).toBe(true);
    expect(seen.join(' ')).toContain('fetch');
    expect(seen.join(' ')).toContain('remote-http');
    for (const secret of secrets) {
      expect(seen.join(' ')).not.toContain(secret);
      expect(bytes.includes(secret)).toBe(false);
    }
    expect(bytes.includes(scene.request.remote.url)).toBe(true);
    expect(bytes.includes(scene.root)).toBe(false);
    expect([...found, ...(await holders(scene.root))]).toEqual([]);
  });

  test('is in no property of a failure', async () => {
    const scene = await createScene();
    const remotes = [
      { url: `http://127.0.0.1:1/acme/shop.git`, authorization },
      { ...scene.request.remote, authorization: `Basic ${Buffer.from(`x-access-token:${token}!`).toString('base64')}` },
      { ...scene.request.remote, url: `${scene.host.url}/acme/missing.git` },
    ];
    const mirror = scene.mirror();
    for (const remote of remotes) {
      const error = await mirror.checkOut({ ...scene.request, remote }, noProgress, neverAborts).then(() => null, (error: unknown) => error);
      const text = inspect(error, { depth: 20, showHidden: true });
      expect(text).toContain('Failure');
      for (const secret of [...secrets, remote.authorization]) expect(text).not.toContain(secret);
    }
    // A message of the host that git repeats.
    let asked = 0;
    scene.host.interceptor = (_request, response) => {
      asked += 1;
      if (asked <= 4) return false;
      response.writeHead(200, { 'content-type': 'application/x-git-upload-pack-result' });
      const line = `ERR who is ${token}, with ${authorization}?`;
      response.end(`${(line.length + 4).toString(16).padStart(4, '0')}${line}`);
      return true;
    };
    const error = await mirror.checkOut(scene.request, noProgress, neverAborts).then(() => null, (error: unknown) => error);
    const text = inspect(error, { depth: 20, showHidden: true });
    expect(text).toContain('who is ***');
    for (const secret of secrets) expect(text).not.toContain(secret);
  });

  test('is refused in a URL, since the URL is passed to the sandbox', async () => {
    const scene = await createScene();
    const url = scene.request.remote.url.replace('http://', `http://name:${token}@`);
    const mirror = scene.mirror();
    await expect(mirror.checkOut({ ...scene.request, remote: { url, authorization } }, noProgress, neverAborts)).rejects.toThrow('credential');
    expect(await holders(scene.root)).toEqual([]);
  });

  test('is given to git without any other variable of the server, in a folder with mode 700', async () => {
    const scene = await createScene();
    const folder = await temporaryFolder();
    const gitBinary = join(folder, 'fake-git');
    await writeFile(gitBinary, `#!/bin/sh\nenv >> '${join(folder, 'env')}'\nexec git "$@"\n`, { mode: 0o755 });
    vi.stubEnv('SKEP_TEST_SECRET', 'open sesame');
    vi.stubEnv('GIT_TRACE_CURL', '1');
    onTestFinished(() => void vi.unstubAllEnvs());
    await open(scene.mirror({ gitBinary }), scene.request);
    const names = (await readFile(join(folder, 'env'), 'utf8')).split('\n').map((line) => line.split('=')[0] ?? '');
    const ours = /^(?:PATH|HOME|LC_ALL|GIT_(?!TRACE)\w+|\w+_(?:proxy|PROXY)|SSL_CERT_\w+|PWD|OLDPWD|SHLVL|_|)$/u;
    expect(names.filter((name) => !ours.test(name))).toEqual([]);
    expect(names).toContain('GIT_CONFIG_VALUE_3');
    expect((await stat(scene.root)).mode & 0o777).toBe(0o700);
  });
});
