import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, readdir, readFile, readlink, rm, stat, symlink, utimes, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { textOfError } from '../../src/adapters/cli/console.ts';
import { copy } from '../../src/adapters/cli/copy.ts';
import { createClient } from '../../src/client/index.ts';
import { first, type Mishap, startRelay } from '../client/relay.ts';
import { object } from '../support/client.ts';
import { cleanEnv, executable, runSkep, runSkepWithInput, startServedSandbox, type ServedSandbox } from '../support/server.ts';
import { until } from '../support/until.ts';

const binary = Buffer.from(Array.from({ length: 3_000_000 }, (_, index) => (index * 7) % 256));
let served: ServedSandbox;
let sandbox = '';
let env: ServedSandbox['env'];
let local = '';

beforeAll(async () => {
  served = await startServedSandbox();
  ({ id: sandbox, env } = served);
});
afterAll(() => served[Symbol.asyncDispose]());
beforeEach(async () => {
  local = await mkdtemp(join(tmpdir(), 'skep-cp-'));
  await mkdir(join(local, 'tree/sub'), { recursive: true });
  await writeFile(join(local, 'tree/run.sh'), '#!/bin/sh\n');
  await chmod(join(local, 'tree/run.sh'), 0o755);
  await writeFile(join(local, 'tree/sub/binary'), binary);
  await symlink('run.sh', join(local, 'tree/link'));
});
afterEach(() => rm(local, { recursive: true, force: true }));

const at = (name: string): string => join(local, name);
const remote = (path: string): string => `${sandbox}:/workspace/${path}`;

async function cp(source: string, target: string): Promise<void> {
  expect(await runSkep(['cp', source, target], env)).toEqual({ code: 0, stdout: '', stderr: '' });
}

/** Copies in this process. A process for each refusal would take half a second of CPU time. */
async function refused(source: string, target: string, message: string): Promise<void> {
  const client = createClient({ url: env['SKEP_PUBLIC_URL'] ?? '', key: env['SKEP_API_KEY'] ?? '' });
  const error: unknown = await copy(client, source, target, new AbortController().signal).then(() => null, (reason: unknown) => reason);
  expect(textOfError(error)).toContain(message);
}

describe('skep cp', () => {
  test('copies a file to a new name, into a directory and over another file, and keeps its mode', async () => {
    await cp(at('tree/run.sh'), remote('files/new-name'));
    await cp(at('tree/run.sh'), remote('files'));
    await cp(at('tree/sub/binary'), remote('files/new-name'));
    await cp(remote('files/new-name'), at('back'));
    expect((await readFile(at('back'))).equals(binary)).toBe(true);
    await cp(remote('files/run.sh'), local);
    expect((await stat(at('run.sh'))).mode & 0o777).toBe(0o755);
    await writeFile(at('empty'), '');
    await cp(at('empty'), remote('files/empty'));
    await cp(remote('files/empty'), at('back'));
    expect((await stat(at('back'))).size).toBe(0);
  });

  test('copies a directory to a new name, into another directory, and copies only its content with /.', async () => {
    await cp(at('tree'), remote('dirs/new'));
    await cp(at('tree'), remote('dirs'));
    await cp(at('tree/.'), remote('dirs/new/more'));
    await cp(remote('dirs'), at('got'));
    for (const place of ['new', 'tree', 'new/more']) {
      expect((await readdir(at(`got/${place}`))).filter((name) => name !== 'more').toSorted(), place).toEqual(['link', 'run.sh', 'sub']);
      expect((await readFile(at(`got/${place}/sub/binary`))).equals(binary), place).toBe(true);
    }
    await cp(remote('dirs'), at('got'));
    expect(await readdir(at('got'))).toContain('dirs');
    await cp(`${remote('dirs/tree')}/.`, at('got'));
    expect(await readdir(at('got'))).toContain('run.sh');
    expect((await readdir(local)).filter((name) => name.includes('.skep-'))).toEqual([]);
  });

  test('copies a link as a link, but follows it if a slash is at its end, and takes . at the end for the content', async () => {
    await mkdir(at('tree/sticky'));
    await chmod(at('tree/sticky'), 0o1777);
    await utimes(at('tree/run.sh'), 4e9, 4e9);
    await symlink('nothing', at('dangling'));
    await symlink('tree', at('turn'));
    await refused(at('turn'), remote('links'), 'symbolic link');
    await cp(`${at('turn')}/`, remote('links'));
    for (const source of [at('dangling'), at('turn'), at('tree/link')]) await cp(source, remote('links'));
    await cp(`${at('turn')}/`, remote('links/sub'));
    await cp(`${at('tree/sub')}/./`, remote('links/sub'));
    const { stdout } = await runSkep(['exec', sandbox, '--', 'stat', '-c', '%F %a', 'links/dangling', 'links/turn', 'links/sub/turn', 'links/sticky'], env);
    expect(stdout).toBe('symbolic link 777\nsymbolic link 777\ndirectory 755\ndirectory 1777\n');
    await cp(remote('links'), at('out'));
    expect([await readlink(at('out/link')), (await readdir(at('out/sub'))).toSorted()]).toEqual(['run.sh', ['binary', 'turn']]);
    expect((await stat(at('out/sub/turn/run.sh'))).mtimeMs).toBe(4e12);
  });

  test('says which sockets it leaves out', async () => {
    await using listener = createServer().listen(at('tree/a-socket'));
    await once(listener, 'listening');
    expect(await runSkep(['cp', at('tree'), remote('sockets')], env)).toMatchObject({ code: 0, stderr: expect.stringContaining('a-socket') });
  });

  test('never writes through a link that comes from the sandbox', async () => {
    await mkdir(at('elsewhere'));
    await symlink(at('elsewhere'), at('tree/turn'));
    await cp(at('tree'), remote('chosen'));
    await refused(`${remote('chosen/turn')}/.`, at('out'), 'not a directory');
    await refused(`${remote('chosen/turn')}/.`, at('tree/sub'), 'not a directory');
    await refused(`${remote('chosen/run.sh')}/.`, at('out'), 'not a directory');
    await refused(remote('chosen/turn'), at('out'), 'symbolic link');
    expect((await readdir(local)).toSorted()).toEqual(['elsewhere', 'tree']);

    // A link below the target is replaced by a directory of the archive.
    await cp(remote('chosen'), at('out'));
    await mkdir(at('later/turn'), { recursive: true });
    await writeFile(at('later/turn/file'), 'x');
    await cp(at('later'), remote('later'));
    await cp(`${remote('later')}/.`, at('out'));
    expect(await readFile(at('out/turn/file'), 'utf8')).toBe('x');
    expect(await readdir(at('elsewhere'))).toEqual([]);
  });

  test('reads a tar archive from stdin, and writes one to stdout', async () => {
    const tar = execFileSync('tar', ['-C', at('tree'), '-cf', '-', '.'], { maxBuffer: 1 << 30 });
    expect((await runSkepWithInput(['cp', '-', remote('streamed')], env, tar)).code).toBe(0);
    const { code, stdout } = await runSkepWithInput(['cp', remote('streamed'), '-'], env, '');
    expect(code).toBe(0);
    const names = execFileSync('tar', ['-tf', '-'], { input: stdout, encoding: 'utf8', maxBuffer: 1 << 30 }).trim().split('\n');
    expect(names.toSorted()).toEqual(['streamed/', 'streamed/link', 'streamed/run.sh', 'streamed/sub/', 'streamed/sub/binary']);
  });

  test('copies while the sandbox is paused, and the sandbox stays paused', async () => {
    const { call } = served;
    for (const kind of ['freeze', 'stop']) {
      expect((await call('POST', `/api/v1/sandboxes/${sandbox}/pause`, { pause_kind: kind })).status).toBe(200);
      await cp(at('tree'), remote(`paused-${kind}`));
      await cp(remote(`paused-${kind}/run.sh`), at(kind));
      expect(await readFile(at(kind), 'utf8')).toBe('#!/bin/sh\n');
      expect(object(await call('GET', `/api/v1/sandboxes/${sandbox}`))).toMatchObject({ status: 'PAUSED', pause_kind: kind });
    }
    await call('POST', `/api/v1/sandboxes/${sandbox}/resume`);
  });

  test('reports each error on stderr, and leaves no files behind', async () => {
    await refused(remote('nothing'), at('nothing'), 'There is no file');
    await refused(at('nothing'), remote('nothing'), 'ENOENT');
    expect(await runSkep(['cp', at('tree'), at('other')], env)).toMatchObject({ code: 1, stderr: expect.stringMatching(/^skep: .*SANDBOX:\/PATH/) });
    await cp(at('tree/run.sh'), remote('way/sub'));
    await refused(remote('way/sub'), at('tree'), `${at('tree/sub')} is a directory, but`);
    await refused(remote('way'), at('tree/run.sh'), `${at('tree/run.sh')} is a file, but`);
    await refused(remote('way/sub'), at('none/file'), `There is no directory ${at('none')}.`);
    await refused(remote('way/sub'), at('none/'), `There is no directory ${at('none/')}.`);
    await refused(remote('a'), remote('b'), 'SANDBOX:/PATH');
    await refused('sb-none:/workspace/x', at('x'), 'There is no sandbox');
    await refused(at('tree'), 'sb-none:/workspace/x', 'There is no sandbox');
    await cp(at('tree/run.sh'), remote('a'));
    const inTheWay = expect.stringContaining('leads through something else than directories');
    expect(await runSkep(['cp', at('tree'), remote('a')], env)).toMatchObject({ code: 1, stderr: inTheWay });
    expect((await runSkepWithInput(['cp', '-', remote('broken')], env, Buffer.alloc(5000, 7))).code).toBe(1);
    expect((await readdir(local)).toSorted()).toEqual(['tree']);
  });

  test("asks macOS's tar for no files with attributes", async () => {
    const script = '#!/bin/sh\necho "COPYFILE_DISABLE is $COPYFILE_DISABLE." >&2\nexit 1\n';
    await writeFile(at('tar'), script, { mode: 0o755 });
    vi.stubEnv('PATH', `${local}:${process.env['PATH']}`);
    onTestFinished(() => void vi.unstubAllEnvs());
    await refused(at('tree'), remote('attributes'), 'COPYFILE_DISABLE is 1.');
  });
});

/** Starts to copy 200 MB out of the sandbox through a relay that disturbs it. */
async function startCopy(mishap: Mishap) {
  await runSkep(['exec', sandbox, '--', 'truncate', '-s', '200M', 'big'], env);
  const relay = await startRelay(env['SKEP_PUBLIC_URL'] ?? '');
  relay.mishap = first(/archive/, mishap);
  const child = spawn(process.execPath, [executable, 'cp', remote('big'), at('out')], {
    env: cleanEnv({ ...env, SKEP_PUBLIC_URL: relay.url }), stdio: ['ignore', 'ignore', 'pipe'],
  });
  return { child, ended: Promise.all([text(child.stderr), once(child, 'exit')]) };
}

describe('a copy out of a sandbox that is broken off', () => {
  test.each([['SIGINT', 130], ['SIGTERM', 143]] as const)('by %s leaves no folder behind, and exits with %i', async (signal, code) => {
    const { child, ended } = await startCopy({ kind: 'stall', bytes: 100_000 });
    await until(async () => (await readdir(local)).join(), (names) => names.includes('out.skep-'), 60_000);
    child.kill(signal);
    const [said, exit] = await ended;
    expect([said, exit, (await readdir(local)).toSorted()]).toEqual(['', [code, null], ['tree']]);
  });

  test('by the server says that the connection was lost, and leaves no folder behind', async () => {
    const { ended } = await startCopy({ kind: 'cut', bytes: 100_000 });
    const [said, exit] = await ended;
    expect([said, exit, (await readdir(local)).toSorted()]).toEqual(['skep: The connection was lost before the end.\n', [1, null], ['tree']]);
  });
});
