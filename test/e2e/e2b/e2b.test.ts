import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { buffer, text } from 'node:stream/consumers';
import { CommandExitError, FileNotFoundError, FilesystemEventType, InvalidArgumentError, Sandbox, SandboxNotFoundError, TimeoutError } from 'e2b';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { send } from '../../adapters/proxy/send.ts';
import { clearEngine, deploymentOf } from '../../support/deployment.ts';
import { describeWithDocker, images } from '../../support/docker.ts';
import { cleanEnv, removeFolder, runSkep, startServer, temporaryFolder, type Server } from '../../support/server.ts';
import { until } from '../../support/until.ts';

const staticKey = 'a-static-key-of-this-test';
const web = {
  id: 'web', image: images.debian, command: ['sleep', 'infinity'], ports: [{ name: 'WEB', port: 8000 }], working_dir: '/workspace',
};

let dataDir: string;
let server: Server;
let options: { apiKey: string; apiUrl: string; sandboxUrl: string };

async function start(env: Readonly<Record<string, string>> = {}): Promise<void> {
  server = await startServer({
    dataDir, env: { SKEP_API_KEY: staticKey, SKEP_SANDBOX_RUNTIME: 'docker', ...env }, config: { specs: [web] },
  });
}

/** Runs a part of this test in another process, with the address and the key in its environment. Returns its output. */
async function inAnotherProcess(part: string, ...args: readonly string[]): Promise<unknown> {
  const env = cleanEnv({ E2B_API_KEY: options.apiKey, E2B_API_URL: options.apiUrl, E2B_SANDBOX_URL: options.sandboxUrl });
  const child = spawn(process.execPath, [join(import.meta.dirname, 'other-process.ts'), part, ...args], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  const exited = once(child, 'exit');
  const printed = await text(child.stdout);
  expect((await exited)[0]).toBe(0);
  return JSON.parse(printed);
}

describeWithDocker("E2B's own package", () => {
  beforeAll(async () => {
    dataDir = await temporaryFolder();
    await start();
    const made = await runSkep(['keys', 'create', 'e2b', '--format', 'e2b'], { SKEP_DATA_DIR: dataDir });
    const apiKey = made.stdout.trim();
    expect(apiKey).toMatch(/^e2b_[0-9a-f]+$/);
    options = { apiKey, apiUrl: `${server.url}/e2b`, sandboxUrl: `${server.url}/e2b` };
  });
  afterAll(async () => {
    await server.stop();
    await clearEngine(deploymentOf(dataDir));
    await removeFolder(dataDir);
  });

  test('starts, finds, pauses, resumes and kills sandboxes', async () => {
    await using sandboxes = new AsyncDisposableStack();
    const begun = Date.now();
    const sandbox = await Sandbox.create({ ...options, timeoutMs: 600_000, metadata: { 'task id': '4 2&é' }, envs: { GREETING: 'hello' } });
    sandboxes.defer(async () => void (await sandbox.kill()));
    const { sandboxId } = sandbox;
    const other = await Sandbox.create('web', { ...options, metadata: { 'task id': 'other' } });
    sandboxes.defer(async () => void (await other.kill()));

    const info = await sandbox.getInfo();
    expect(info).toMatchObject({ sandboxId, templateId: 'web', metadata: { 'task id': '4 2&é' }, state: 'running', cpuCount: 2, memoryMB: 2048 });
    expect(Math.abs(info.endAt.getTime() - begun - 600_000)).toBeLessThan(60_000);
    await sandbox.setTimeout(1_200_000);
    expect((await sandbox.getInfo()).endAt.getTime()).toBeGreaterThan(info.endAt.getTime() + 300_000);

    const listed = Sandbox.list({ ...options, query: { metadata: { 'task id': '4 2&é' } } });
    expect((await listed.nextItems()).map((one) => one.sandboxId)).toEqual([sandboxId]);
    for (const [order, expected] of [['desc', [other.sandboxId, sandboxId]], ['asc', [sandboxId, other.sandboxId]]] as const) {
      const paged = Sandbox.list({ ...options, limit: 1, order, query: { startedAfter: info.startedAt } });
      const seen: string[] = [];
      while (paged.hasNext) seen.push(...(await paged.nextItems()).map((one) => one.sandboxId));
      expect(seen).toEqual(expected);
    }

    expect(await sandbox.isRunning()).toBe(true);
    expect(await sandbox.pause()).toBe(true);
    expect(await Sandbox.pause(sandboxId, options)).toBe(false);
    expect(await sandbox.isRunning()).toBe(false);
    expect((await Sandbox.getInfo(sandboxId, options)).endAt.getUTCFullYear()).toBe(9999);
    const paused = Sandbox.list({ ...options, query: { state: ['paused'] } });
    expect((await paused.nextItems()).map((one) => one.sandboxId)).toEqual([sandboxId]);
    const resumed = await Sandbox.connect(sandboxId, { ...options, timeoutMs: 120_000 });
    expect(await resumed.isRunning()).toBe(true);
    expect(Math.abs((await resumed.getInfo()).endAt.getTime() - Date.now() - 120_000)).toBeLessThan(60_000);
    expect((await resumed.commands.run('echo $GREETING')).stdout).toBe('hello\n');

    const [metric] = await sandbox.getMetrics();
    expect(metric).toMatchObject({ cpuUsedPct: expect.any(Number), memUsed: expect.any(Number) });
    expect(metric?.memUsed).toBeGreaterThan(0);

    const ended = await resumed.commands.run('sleep 60', { background: true });
    expect(await sandbox.kill()).toBe(true);
    await expect(ended.wait()).rejects.toThrow('sandbox was killed or reached its end of life');
    expect(await sandbox.kill()).toBe(false);
    expect(await sandbox.isRunning()).toBe(false);
    await expect(sandbox.files.list('/')).rejects.toThrow(TimeoutError);
    await expect(sandbox.files.read('/etc/hosts')).rejects.toThrow(TimeoutError);
    await expect(Sandbox.connect(sandboxId, options)).rejects.toThrow(SandboxNotFoundError);
    await expect(Sandbox.create('no-such-template', options)).rejects.toThrow('no-such-template');
    await expect(Sandbox.create({ ...options, allowInternetAccess: false })).rejects.toThrow('internet access');
    await expect(other.createSnapshot()).rejects.toThrow('snapshots');
    await expect(Sandbox.create({ ...options, apiKey: `e2b_${'0'.repeat(40)}` })).rejects.toThrow('Unauthorized');
  });

  test('pauses a sandbox at the end of its timeout, even if it is in use, and resumes it with a new timeout', async () => {
    await using sandboxes = new AsyncDisposableStack();
    const sandbox = await Sandbox.create({ ...options, timeoutMs: 600_000, lifecycle: { onTimeout: 'pause' } });
    sandboxes.defer(async () => void (await sandbox.kill()));
    const counting = await sandbox.commands.run('read line; echo "got $line"', { background: true, stdin: true });
    expect(await sandbox.getInfo()).toMatchObject({ state: 'running', lifecycle: { onTimeout: 'pause', autoResume: false } });
    await sandbox.setTimeout(1000);
    const { endAt } = await until(() => sandbox.getInfo(), ({ state }) => state === 'paused', 30_000);
    expect(endAt.getUTCFullYear()).toBe(9999);
    const resumed = await Sandbox.connect(sandbox.sandboxId, { ...options, timeoutMs: 300_000 });
    expect(Math.abs((await resumed.getInfo()).endAt.getTime() - Date.now() - 300_000)).toBeLessThan(60_000);
    const same = await resumed.commands.connect(counting.pid);
    await resumed.commands.sendStdin(counting.pid, 'a line\n');
    expect((await same.wait()).stdout).toBe('got a line\n');
  });

  test('resumes a sandbox that was started with autoResume by a command', async () => {
    await using sandboxes = new AsyncDisposableStack();
    const sandbox = await Sandbox.create({ ...options, timeoutMs: 600_000, lifecycle: { onTimeout: 'pause', autoResume: true } });
    sandboxes.defer(async () => void (await sandbox.kill()));
    await sandbox.files.write('note', 'kept');
    await sandbox.setTimeout(1000);
    await until(() => sandbox.getInfo(), ({ state }) => state === 'paused', 30_000);
    expect((await sandbox.commands.run('cat note')).stdout).toBe('kept');
    const { state, endAt, lifecycle } = await sandbox.getInfo();
    expect([state, lifecycle]).toEqual(['running', { onTimeout: 'pause', autoResume: true }]);
    expect(Math.abs(endAt.getTime() - Date.now() - 600_000)).toBeLessThan(60_000);
  });

  test('runs, lists and kills commands, writes to their stdin, and opens terminals', async () => {
    await using sandbox = await disposable();
    const { commands, pty } = sandbox.value;
    const seen: string[] = [];
    const result = await commands.run('echo out; echo oops >&2; pwd', { onStdout: (part) => void seen.push(part), envs: { A: 'b' } });
    expect(result).toMatchObject({ exitCode: 0, stdout: 'out\n/workspace\n', stderr: 'oops\n' });
    expect(seen.join('')).toBe('out\n/workspace\n');
    const { stdout: variables } = await commands.run('echo $E2B_SANDBOX $E2B_SANDBOX_ID $E2B_TEMPLATE_ID');
    expect(variables).toBe(`true ${sandbox.value.sandboxId} web\n`);
    await expect(commands.run('exit 3')).rejects.toThrow(CommandExitError);
    expect((await commands.run('true', { user: 'user' })).exitCode).toBe(0);
    await expect(commands.run('true', { user: 'nobody' })).rejects.toThrow(InvalidArgumentError);
    await expect(commands.run('true', { cwd: 'missing' })).rejects.toThrow(InvalidArgumentError);
    await expect(commands.run('exit 126', { cwd: '/tmp' })).rejects.toThrow(CommandExitError);

    const reading = await commands.run('read line; echo "got $line"; cat', { background: true, stdin: true });
    await commands.sendStdin(reading.pid, 'a line\nmore');
    await commands.closeStdin(reading.pid);
    expect((await reading.wait()).stdout).toBe('got a line\nmore');

    const sleeping = await commands.run('sleep 1000', { background: true });
    expect((await commands.list()).map(({ pid, args }) => [pid, args.at(-1)])).toEqual([[sleeping.pid, 'sleep 1000']]);
    expect(await commands.kill(sleeping.pid)).toBe(true);
    await expect(sleeping.wait()).rejects.toThrow(CommandExitError);
    expect(await commands.kill(sleeping.pid)).toBe(false);
    await expect(commands.run('sleep 1000', { timeoutMs: 500 })).rejects.toThrow('timeoutMs');
    await until(() => commands.list(), (left) => left.length === 0, 30_000);

    let shown = '';
    const decoder = new TextDecoder();
    const terminal = await pty.create({ cols: 81, rows: 25, onData: (data) => void (shown += decoder.decode(data, { stream: true })) });
    await pty.sendInput(terminal.pid, new TextEncoder().encode('stty size\n'));
    await until(() => shown, (screen) => screen.includes('25 81'), 30_000);
    await pty.resize(terminal.pid, { cols: 90, rows: 30 });
    await pty.sendInput(terminal.pid, new TextEncoder().encode('stty size; exit 0\n'));
    await terminal.wait();
    expect(shown).toContain('30 90');
  });

  test('reads, writes and watches files, also with signed URLs', async () => {
    await using sandbox = await disposable();
    const { files } = sandbox.value;
    const content = new Uint8Array(Array.from({ length: 100_000 }, (_, at) => (at * 7) % 256));
    expect(await files.write('notes/a.bin', new Blob([content]))).toMatchObject({ name: 'a.bin', type: 'file', path: '/workspace/notes/a.bin' });
    expect(Buffer.compare(Buffer.from(await files.read('/workspace/notes/a.bin', { format: 'bytes' })), content)).toBe(0);
    expect(await files.write('empty', '')).toMatchObject({ path: '/workspace/empty' });
    expect(await files.read('empty')).toBe('');
    await files.write('zipped', 'x'.repeat(10_000), { gzip: true });
    expect(await files.read('zipped')).toBe('x'.repeat(10_000));
    const many = await files.write([{ path: 'many/b', data: 'B' }, { path: '/workspace/many/c', data: 'C' }]);
    expect(many.map(({ path }) => path)).toEqual(['/workspace/many/b', '/workspace/many/c']);
    const streamed = await files.read('many/b', { format: 'stream' });
    expect((await buffer(streamed)).toString()).toBe('B');
    expect((await files.list('many')).map(({ name, type, size }) => [name, type, size])).toEqual([['b', 'file', 1], ['c', 'file', 1]]);
    expect((await files.list('.', { depth: 2 })).map(({ path }) => path)).toContain('/workspace/many/b');
    expect(await files.exists('many/b')).toBe(true);
    expect(await files.exists('many/nothing')).toBe(false);
    expect(await files.getInfo('many')).toMatchObject({ name: 'many', type: 'dir', path: '/workspace/many' });
    expect(await files.rename('many/b', 'many/d')).toMatchObject({ path: '/workspace/many/d', permissions: expect.stringMatching(/^-rw/) });
    await expect(files.read('many/b')).rejects.toThrow(FileNotFoundError);
    expect(await files.makeDir('deep/er')).toBe(true);
    expect(await files.makeDir('deep/er')).toBe(false);
    await files.remove('many');
    expect(await files.exists('many')).toBe(false);

    await sandbox.value.commands.run('mkdir links; ln -s ../empty links/file; ln -s /etc links/dir; ln -s nothing links/none');
    expect(await files.getInfo('links/file')).toMatchObject({ name: 'file', type: 'file', symlinkTarget: '/workspace/empty', mode: 0o644 });
    expect((await files.list('links')).map(({ name, type, symlinkTarget }) => [name, type, symlinkTarget])).toEqual([
      ['dir', 'dir', '/etc'], ['file', 'file', '/workspace/empty'], ['none', 'symlink', '/workspace/links/nothing'],
    ]);

    const events: string[] = [];
    const watching = await files.watchDir('deep', ({ name, type }) => void events.push(`${type} ${name}`), { recursive: true });
    await files.write('deep/er/in/new', '1');
    await until(() => events, (all) => all.includes(`${FilesystemEventType.WRITE} er/in/new`), 30_000);
    await files.rename('deep/er/in/new', 'deep/er/in/old');
    await until(() => events, (all) => all.includes(`${FilesystemEventType.CREATE} er/in/old`), 30_000);
    await files.remove('deep/er/in');
    await until(() => events, (all) => all.includes(`${FilesystemEventType.REMOVE} er/in/old`), 30_000);
    await watching.stop();
    const { CREATE, WRITE, REMOVE } = FilesystemEventType;
    const created = [`${CREATE} er/in`, `${CREATE} er/in/new`, `${WRITE} er/in/new`, `${CREATE} er/in/old`];
    expect(new Set(events)).toEqual(new Set([...created, `${REMOVE} er/in/new`, `${REMOVE} er/in`, `${REMOVE} er/in/old`]));

    const written = new FormData();
    written.append('file', new Blob(['by a URL']), 'ignored');
    const uploadUrl = await sandbox.value.uploadUrl('/workspace/uploaded', { useSignatureExpiration: 60 });
    expect(uploadUrl.startsWith(`${server.url}/files?`)).toBe(true);
    expect((await fetch(uploadUrl, { method: 'POST', body: written })).status).toBe(200);
    const field = new FormData();
    field.append('file', 'file content');
    expect((await fetch(await sandbox.value.uploadUrl('field'), { method: 'POST', body: field })).status).toBe(200);
    expect(await files.read('field')).toBe('file content');
    const downloadUrl = await sandbox.value.downloadUrl('/workspace/uploaded');
    expect(await (await fetch(downloadUrl)).text()).toBe('by a URL');
    expect((await fetch(downloadUrl, { method: 'POST', body: written })).status).toBe(401);
    expect((await fetch(downloadUrl.replace('uploaded', 'empty'))).status).toBe(401);
    const expired = await fetch(await sandbox.value.downloadUrl('/workspace/uploaded', { useSignatureExpiration: -1 }));
    expect([expired.status, await expired.json()]).toEqual([401, { code: 401, message: 'signature is already expired' }]);
  });

  test('reaches a port through the proxy', async () => {
    await using sandbox = await disposable();
    const { commands, files } = sandbox.value;
    await files.write('www/index.html', 'hello from the port');
    await commands.run('exec perl -MIO::Socket::INET -e \'my $s = IO::Socket::INET->new(LocalPort => 8000, Listen => 5, ReuseAddr => 1); while (my $c = $s->accept) { sysread $c, my $r, 4096; print $c "HTTP/1.1 200 OK\\r\\nContent-Length: 5\\r\\nConnection: close\\r\\n\\r\\nhello"; close $c }\'', { background: true });
    const url = new URL(`http://${sandbox.value.getHost(8000)}`);
    const get = (key: string) => send(Number(url.port), '/', { headers: { Host: url.host, 'e2b-traffic-access-token': key } });
    const answer = await until(() => get(sandbox.value.trafficAccessToken ?? ''), ({ status }) => status !== 502, 30_000);
    expect([answer.status, answer.body]).toEqual([200, 'hello']);
    expect((await get('wrong')).status).toBe(401);
  });

  test('follows a command from another process after kill -9 of the server', async () => {
    await using sandbox = await disposable();
    const { sandboxId, commands } = sandbox.value;
    const script = 'for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.5; done; echo done';
    const counting = await commands.run(script, { background: true });
    const broken = counting.wait().then(() => 'ended', () => 'broken');
    const port = new URL(server.url).port;
    await server.kill();
    expect(await broken).toBe('broken');
    // Otherwise the proxy would need the port after it, which another program may have.
    await start({ SKEP_PORT: port, SKEP_PROXY_PORT: '0' });
    expect(await inAnotherProcess('follow', sandboxId, String(counting.pid))).toEqual({ exitCode: 0, stdout: '1\n2\n3\n4\n5\n6\n7\n8\ndone\n' });
  });
});

/** Returns a sandbox that is killed at the end of its scope. */
async function disposable(): Promise<AsyncDisposable & { readonly value: Sandbox }> {
  const value = await Sandbox.create('web', { ...options, timeoutMs: 600_000 });
  return { value, [Symbol.asyncDispose]: async () => void (await value.kill()) };
}
