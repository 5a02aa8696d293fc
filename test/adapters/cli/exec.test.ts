import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { open } from 'node:fs/promises';
import { PassThrough } from 'node:stream';
import { buffer, text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { duplicateSignalMs } from '../../../src/adapters/cli/console.ts';
import { sendKeys } from '../../../src/adapters/cli/exec-command.ts';
import { items, object } from '../../support/client.ts';
import { cleanEnv, executable } from '../../support/server.ts';
import { until } from '../../support/until.ts';
import { first, startRelay } from '../../client/relay.ts';
import { commands, randomOutput, runningSandbox } from '../http/executions-support.ts';
import { createWorld, type World } from '../http/world.ts';

let world: World;
let sandbox: Awaited<ReturnType<typeof runningSandbox>>;
beforeAll(async () => {
  world = await createWorld({ command: commands });
  sandbox = await runningSandbox(world);
});
afterAll(() => world.close());

/** Runs the executable in a new terminal. */
function inTerminal(args: readonly string[], url = world.url) {
  const words = [process.execPath, executable, ...args].map((word) => `'${word}'`).join(' ');
  const env = { ...cleanEnv({ SKEP_API_KEY: world.keys.ann, SKEP_PUBLIC_URL: url }), SHELL: '/bin/sh' };
  const child = spawn('script', ['-qec', words, '/dev/null'], { env, stdio: ['pipe', 'pipe', 'inherit'] });
  let screen = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (screen += text));
  return {
    type: (keys: string): void => void child.stdin.write(keys),
    sees: (text: string) => until(() => screen, (all) => all.includes(text), 60_000),
    /** Its exit code. */
    ended: once(child, 'exit').then(([code]) => Number(code)),
  };
}

test('keys reach the command one by one and unchanged, and its exit code is the exit code of the client', async () => {
  const terminal = inTerminal(['exec', '-it', sandbox.id, 'cat']);
  const [execution] = await until(async () => items(await world.ann('GET', sandbox.path)), (all) => all.length === 1, 60_000);
  expect(execution).toMatchObject({ command: ['cat'], tty: true, stdin: true });
  terminal.type('a');
  await terminal.sees('a');
  // A terminal that is not in raw mode would handle these itself.
  terminal.type('\u0003\u0004\u001ab');
  await terminal.sees('\u0003\u0004\u001ab');
  // Programs that fill the screen send a line feed to move the cursor down in its column.
  terminal.type('up\ndown');
  await terminal.sees('up\ndown');
  await world.ann('POST', `${sandbox.path}/${String(execution?.['id'])}/signal`, { signal: 'SIGTERM' });
  expect(await terminal.ended).toBe(143);
  expect(items(await world.ann('GET', sandbox.path))).toEqual([]);
});

test('the client of a shell exits with the exit code of the shell, and a command in a terminal continues if the connection is cut', async () => {
  const terminal = inTerminal(['shell', sandbox.id]);
  await terminal.sees('exec bash');
  expect(await terminal.ended).toBe(3);

  const cut = inTerminal(['exec', '-it', sandbox.id, 'cat']);
  const [execution] = await until(async () => items(await world.ann('GET', sandbox.path)), (all) => all.length === 1, 60_000);
  cut.type('one ');
  await cut.sees('one ');
  const before = new Set(world.connections);
  for (const socket of before) socket.destroy();
  // The client connects again only after it has noticed that the first connection is closed.
  await until(() => [...world.connections].some((socket) => !before.has(socket)), Boolean, 60_000);
  cut.type('two ');
  await cut.sees('one two ');
  await world.ann('POST', `${sandbox.path}/${String(execution?.['id'])}/signal`, { signal: 'SIGTERM' });
  expect(await cut.ended).toBe(143);
});

test('a detached command continues after its id is printed, and is refused with a terminal', async () => {
  const terminal = inTerminal(['exec', '-d', sandbox.id, 'sleep']);
  expect(await terminal.ended).toBe(0);
  const execution = items(await world.ann('GET', sandbox.path)).find(({ status }) => status === 'running');
  expect(execution).toMatchObject({ command: ['sleep'], tty: false, stdin: false });
  await terminal.sees(String(execution?.['id']));
  const listed = inTerminal(['executions', sandbox.id]);
  await listed.sees('COMMAND');
  await listed.sees(`${String(execution?.['id'])}  running  -     ${String(execution?.['started_at'])}  sleep`);
  expect((await world.ann('DELETE', `${sandbox.path}/${String(execution?.['id'])}`)).status).toBe(204);
  const refused = inTerminal(['exec', '-dt', sandbox.id, 'cat']);
  await refused.sees('Use -d without -i and -t');
  expect(await refused.ended).toBe(1);
});

test('a second Ctrl-C ends the client and its command if the server does not answer', async () => {
  const relay = await startRelay(world.url);
  relay.mishap = (target) => (target.includes('/ticket') ? { kind: 'hang' } : null);
  const env = cleanEnv({ SKEP_API_KEY: world.keys.ann, SKEP_PUBLIC_URL: relay.url });
  const child = spawn(process.execPath, [executable, 'exec', sandbox.id, 'sleep'], { env, stdio: 'pipe' });
  const errorOutput = text(child.stderr);
  const terminal = inTerminal(['exec', '-it', sandbox.id, 'sleep'], relay.url);
  await until(() => relay.seen, (seen) => seen.filter((target) => target.includes('/ticket')).length === 2);
  const since = performance.now();
  const exited = once(child, 'exit');
  // A signal soon after the first one is ignored, since npm may send the same Ctrl-C twice. A client deletes its command last.
  const deleted = () => relay.seen.filter((target) => /\/executions\/[\w-]+$/.test(target)).length;
  await until(() => deleted() === 1 || !child.kill('SIGINT'), Boolean);
  expect(performance.now() - since).toBeGreaterThan(duplicateSignalMs);
  expect(await exited).toEqual([1, null]);
  const typeInterrupt = (): false => {
    terminal.type('\u0003');
    return false;
  };
  await until(() => deleted() === 2 || typeInterrupt(), Boolean);
  expect(await errorOutput).toContain('The server does not answer.');
  await terminal.sees('The server does not answer.');
  expect(await terminal.ended).toBe(1);
  expect(items(await world.ann('GET', sandbox.path))).toEqual([]);
});

/** Runs the executable with pipes, through a relay. */
function throughRelay(url: string, args: readonly string[], nodeOptions: readonly string[] = []) {
  const env = cleanEnv({ SKEP_API_KEY: world.keys.ann, SKEP_PUBLIC_URL: url });
  const child = spawn(process.execPath, [...nodeOptions, executable, ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  return { child, ended: Promise.all([buffer(child.stdout), text(child.stderr), once(child, 'close').then(([code]) => code as number | null)]) };
}

test.each([['SIGINT', 130], ['SIGTERM', 143], ['SIGHUP', 129]] as const)('%s during the start of a command reaches the command', async (signal, code) => {
  const relay = await startRelay(world.url);
  // The command starts, and the client hears of it only when it asks again.
  relay.mishap = first(/POST .*executions$/, { kind: 'lose' });
  const { child, ended } = throughRelay(relay.url, ['exec', sandbox.id, 'sleep']);
  await until(() => relay.seen, (seen) => seen.some((target) => /POST .*executions$/.test(target)));
  child.kill(signal);
  expect(await ended).toEqual([Buffer.alloc(0), '', code]);
  expect(items(await world.ann('GET', sandbox.path)).filter(({ status }) => status === 'running')).toEqual([]);
});

test('a refused start is reported once', async () => {
  const relay = await startRelay(world.url);
  const body = JSON.stringify({ detail: 'It is paused.', code: 'sandbox_not_running' });
  relay.mishap = first(/POST .*executions$/, { kind: 'answer', status: 409, body });
  expect(await throughRelay(relay.url, ['exec', '-i', sandbox.id, 'sleep']).ended).toEqual([Buffer.alloc(0), 'skep: It is paused.\n', 1]);
});

test('a command is deleted if its input can not be read', async () => {
  // No page is at its first address.
  await using unreadable = await open('/proc/self/mem');
  const env = cleanEnv({ SKEP_API_KEY: world.keys.ann, SKEP_PUBLIC_URL: world.url });
  const child = spawn(process.execPath, [executable, 'exec', '-i', sandbox.id, 'cat'], { env, stdio: [unreadable.fd, 'pipe', 'pipe'] });
  const [stderr, [code]] = await Promise.all([text(child.stderr!), once(child, 'close')]);
  expect([stderr, code]).toEqual(["skep: Can't read the standard input: EIO: i/o error, read\n", 1]);
  expect(items(await world.ann('GET', sandbox.path)).filter(({ status }) => status === 'running')).toEqual([]);
});

test('a command is deleted if its output can not be read, for example because a proxy passes no WebSockets on', async () => {
  const relay = await startRelay(world.url);
  relay.mishap = (target) => (target.includes('/attach') ? { kind: 'cut', bytes: 0 } : null);
  const [, stderr, code] = await throughRelay(relay.url, ['exec', sandbox.id, 'sleep']).ended;
  expect([stderr, code]).toEqual([expect.stringContaining('skep: The server answers, but no WebSocket opens.'), 1]);
  expect(items(await world.ann('GET', sandbox.path)).filter(({ status }) => status === 'running')).toEqual([]);
});

/** Time limits of the client end sooner: two minutes take four seconds. */
const fastTime = ['--import', 'data:text/javascript,const now = performance.now.bind(performance); performance.now = () => 30 * now();'];

test.each([
  ['no server answers', { kind: 'lose' }],
  ['a proxy does not reach the server', { kind: 'answer', status: 502, body: 'Bad Gateway' }],
] as const)('a command continues if %s for too long, and the client says where its output is', async (_, mishap) => {
  const relay = await startRelay(world.url);
  relay.mishap = (target) => (/ticket|attach/.test(target) ? mishap : null);
  const [, stderr, code] = await throughRelay(relay.url, ['exec', sandbox.id, 'sleep'], fastTime).ended;
  const execution = items(await world.ann('GET', sandbox.path)).find(({ status }) => status === 'running');
  expect([stderr, code]).toEqual([expect.stringContaining(`logs ${sandbox.id} ${String(execution?.['id'])}\n`), 1]);
  await world.ann('DELETE', `${sandbox.path}/${String(execution?.['id'])}`);
});

test('a second signal ends a client whose start hangs', async () => {
  const relay = await startRelay(world.url);
  relay.mishap = first(/POST .*executions$/, { kind: 'hang' });
  const { child, ended } = throughRelay(relay.url, ['exec', sandbox.id, 'sleep']);
  await until(() => relay.seen, (seen) => seen.some((target) => /POST .*executions$/.test(target)));
  // A signal that arrives while the process ends would replace its exit code.
  await until(() => child.stderr.readableDidRead || !child.kill('SIGINT'), Boolean);
  const [, stderr, code] = await ended;
  expect([stderr, code]).toEqual(['skep: The server does not answer. The command may still run in the sandbox.\n', 1]);
});

test('followed logs of an execution continue at the same byte after the connection was lost', async () => {
  const relay = await startRelay(world.url);
  relay.mishap = first(/output.*stdout.*follow=true/, { kind: 'cut', bytes: 70_000 }, { kind: 'lose' }, { kind: 'lose' });
  const started = await world.ann('POST', sandbox.path, { command: ['random'] });
  const [stdout, stderr, code] = await throughRelay(relay.url, ['logs', '-f', sandbox.id, String(object(started)['id'])]).ended;
  expect([stdout.equals(randomOutput), code]).toEqual([true, 0]);
  expect(stderr).toMatch(/^The connection to the server was lost, reconnecting: .*\n$/);
});

test('the followed log of a sandbox ends with the advice to run the command again if the server is away', async () => {
  const relay = await startRelay(world.url);
  world.engine.write(sandbox.id, 'some output\n');
  relay.mishap = (target) => (target.includes('/logs') ? { kind: 'cut', bytes: 4 } : { kind: 'lose' });
  const [, stderr, code] = await throughRelay(relay.url, ['logs', '-f', sandbox.id]).ended;
  expect([stderr, code]).toEqual(['skep: The connection was lost before the end of the log. Run the command again.\n', 1]);
});

test('keys that wait for a server that is away are bounded', async () => {
  const [isBack, isOver] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let written = 0;
  const attachment = {
    write: async ({ length }: Uint8Array) => void (await isBack.promise, (written += length)),
    closeInput: async () => isOver.resolve(),
  };
  const stdin = new PassThrough();
  sendKeys(stdin, Promise.resolve(attachment), () => {});
  for (let part = 0; part < 40; part += 1) if (!stdin.write(Buffer.alloc(1 << 16, 'a'))) await once(stdin, 'drain');
  isBack.resolve();
  stdin.end();
  await isOver.promise;
  expect([written > 1 << 20, written < 2 << 20]).toEqual([true, true]);
});
