import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { exitOnOutputError } from '../../src/adapters/cli/console.ts';
import { main } from '../../src/composition/executable/program.ts';
import { acpAgentCommand } from '../doubles/acp-agent/start.ts';
import { acpScript } from '../doubles/acp-agent/steps.ts';
import { createClient, object } from '../support/client.ts';
import { cleanEnv, executable, runSkep, type Server, startServer } from '../support/server.ts';
import { until } from '../support/until.ts';

const key = 'a-static-key-of-this-test';
const options = [
  { optionId: 'yes', name: 'Yes', kind: 'allow_once' as const },
  { optionId: 'no', name: 'No', kind: 'reject_once' as const },
];

let server: Server;
let env: Record<string, string>;
const children: ChildProcess[] = [];
beforeAll(async () => {
  const command = ['sh', '-c', 'exec sleep infinity'];
  const agent = { protocol: 'acp', command: acpAgentCommand(), permissions: 'ask' };
  const tell = ['sh', '-c', 'echo "LEVEL is $LEVEL, the token has ${#SKEP_TEST_TOKEN} characters: $SKEP_TEST_TOKEN"; exit 3'];
  const specs = [{ id: 'coder', command, agent }, { id: 'plain', command }, { id: 'told', command: tell, allowed_secrets: ['SKEP_TEST_TOKEN'] },
    { id: 'speaks', command: ['sh', '-c', 'echo one; echo two >&2; exec sleep infinity'] }];
  server = await startServer({ env: { SKEP_API_KEY: key, SKEP_TEST_TOKEN: 'hush-hush' }, config: { specs } });
  env = { SKEP_API_KEY: key, SKEP_PUBLIC_URL: server.url };
});
afterAll(async () => {
  for (const child of children) child.kill('SIGKILL');
  await server.close();
});

/** Runs the executable in the background. */
const run = (...args: readonly string[]) => runWith(key, ...args);

function runWith(apiKey: string, ...args: readonly string[]) {
  const child = spawn(process.execPath, [executable, ...args], { env: cleanEnv({ ...env, SKEP_API_KEY: apiKey }), stdio: ['pipe', 'pipe', 'pipe'] });
  children.push(child);
  let shown = '';
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text: string) => (shown += text));
  const exited = once(child, 'close') as Promise<[number | null]>;
  return {
    type: (line: string): void => void child.stdin.write(`${line}\n`),
    end: (): void => void child.stdin.end(),
    interrupt: (): void => void child.kill('SIGINT'),
    shown: () => shown,
    sees: async (words: string): Promise<void> => void (await until(() => shown, (all) => all.includes(words), 60_000)),
    exitCode: async () => (await exited)[0],
  };
}

/**
 * Runs the program in this process. A process for each error would take half a second of CPU time. Not for commands that follow something:
 * they would handle the signals of this process.
 */
async function runHere(args: readonly string[], settings: Readonly<Record<string, string>>) {
  const printed = { stdout: '', stderr: '' };
  for (const [name, value] of Object.entries({ SKEP_API_KEY: '', ...settings })) vi.stubEnv(name, value);
  const outputs = (['stdout', 'stderr'] as const).map((name) =>
    vi.spyOn(process[name], 'write').mockImplementation((text) => {
      printed[name] += String(text);
      return true;
    }));
  try {
    return { code: await main(['node', 'skep', ...args]), ...printed };
  } finally {
    for (const output of outputs) output.mockRestore();
    for (const stream of [process.stdout, process.stderr]) stream.off('error', exitOnOutputError);
    vi.unstubAllEnvs();
  }
}

/** Asserts that the program failed with this message, and showed no stack. */
function expectError({ code, stdout, stderr }: Awaited<ReturnType<typeof runSkep>>, words: RegExp): void {
  expect([code, stdout + stderr]).toEqual([1, expect.stringMatching(words)]);
  expect(stderr).not.toMatch(/^ +at /m);
}

const idIn = (text: string, kind: 'conversation' | 'sandbox'): string => new RegExp(`${kind} ([a-z0-9-]+)`).exec(text)?.[1] ?? '';

describe('The command line client', () => {
  test('chats with an agent, and lists, follows, pauses and ends conversations and sandboxes', async () => {
    const following = run('sandboxes', 'follow');
    const first = await runSkep(['chat', '--message', 'hello', '--once', '--title', 'Say hello'], env);
    expect(first).toMatchObject({ code: 0, stdout: expect.stringMatching(/ {2}READY\n> hello\nheard: hello\n|> hello\n[^]* {2}READY\nheard: hello\n/) });
    const [id, sandbox] = [idIn(first.stderr, 'conversation'), idIn(first.stderr, 'sandbox')];

    const again = await runSkep(['chat', '--conversation', id, '--message', 'more', '--once'], env);
    expect(again).toMatchObject({ code: 0, stdout: '> more\nheard: more\n' });

    const chat = run('chat', '--conversation', id);
    chat.type(acpScript({ ask: { toolCallId: 'call-1', title: 'Write a file', options } }));
    await chat.sees('  2  No');
    chat.type('1');
    chat.end();
    expect(await chat.exitCode()).toBe(0);
    expect(chat.shown()).toContain('heard: hello');
    expect(chat.shown()).toContain('chosen: yes');

    const listed = await runSkep(['conversations'], env);
    expect(listed).toMatchObject({ code: 0, stdout: expect.stringMatching(new RegExp(`^ID +STATE +SANDBOX +REPOSITORY +TITLE +ERROR\n${id} +idle +RUNNING +- +Say hello +-\n`)) });
    expect(await runSkep(['sandboxes', 'pause', sandbox, '--kind', 'stop'], env)).toMatchObject({ code: 0, stdout: expect.stringMatching(/PAUSED \(stop\) +coder/) });
    expect(await runSkep(['sandboxes', 'list'], env)).toMatchObject({ stdout: expect.stringMatching(new RegExp(`${sandbox} +PAUSED \\(stop\\)`)) });
    expect(await runSkep(['sandboxes', 'resume', sandbox], env)).toMatchObject({ code: 0, stdout: expect.stringMatching(/RUNNING +coder/) });
    // `follow` shows only events after its start, so the moves are repeated until it shows one.
    const call = createClient(server.url, key);
    const moved = async () => {
      for (const move of ['pause', 'resume']) await call('POST', `/api/v1/sandboxes/${sandbox}/${move}`);
      return following.shown();
    };
    await until(moved, (shown) => shown.includes(`${sandbox} RESUMING -> RUNNING`), 60_000);
    following.interrupt();
    expect(await following.exitCode()).toBe(130);

    const shown = await runSkep(['conversations', 'show', id], env);
    expect(shown).toMatchObject({ code: 0, stdout: expect.stringMatching(/^# Say hello\n\n## User, \S+\n\n> hello\n\n## Agent, \S+\n\n> heard: hello\n/) });
    const { items } = JSON.parse((await runSkep(['conversations', 'show', id, '--json'], env)).stdout) as { items: object[] };
    expect(items.slice(0, 2)).toMatchObject([{ kind: 'message', role: 'user', text: 'hello' }, { kind: 'message', role: 'agent', text: 'heard: hello' }]);

    const told = run('conversations', 'follow', id);
    await told.sees('chosen: yes');
    expect(await runSkep(['conversations', 'cancel', id, 'msg-1'], env)).toMatchObject({ code: 0, stdout: expect.stringContaining(id) });
    expect(await runSkep(['conversations', 'archive', id], env)).toMatchObject({ code: 0, stdout: expect.stringContaining(id) });
    expect((await runSkep(['conversations', 'show', id], env)).stdout).toBe(shown.stdout);
    expect(await runSkep(['conversations', 'end', id], env)).toEqual({ code: 0, stdout: '', stderr: `The conversation ${id} is deleted.\n` });
    await told.sees('the conversation was ended');
    expect(await told.exitCode()).toBe(0);
    expect(await runSkep(['sandboxes', 'delete', sandbox], env)).toEqual({ code: 0, stdout: '', stderr: `The sandbox ${sandbox} is deleted.\n` });
    expect((await runSkep(['sandboxes'], env)).stdout).not.toContain(sandbox);
  });

  test('starts, shows, lists and deletes a sandbox with --json', async () => {
    const started = JSON.parse((await runSkep(['sandboxes', 'start', 'plain', '--json'], env)).stdout) as { id: string; created_at: string };
    expect(started).toMatchObject({ sandbox_spec_id: 'plain', created_at: expect.any(String) });
    const address = ['--url', server.url.replace('http://', '')];
    expect(await runSkep(['sandboxes', 'get', started.id, ...address], env)).toMatchObject({
      code: 0, stdout: expect.stringMatching(new RegExp(`^id +${started.id}\n(.+\n)*sandbox_spec_id +plain\nstatus +[A-Z]+\n(.+\n)*created_at +${started.created_at}\n`)),
    });
    expect(JSON.parse((await runSkep(['sandboxes', 'list', '--json'], env)).stdout)).toMatchObject({ items: expect.arrayContaining([expect.objectContaining({ id: started.id })]) });
    const deleted = await runSkep(['sandboxes', 'delete', started.id, '--json'], env);
    expect(JSON.parse(deleted.stdout)).toEqual({ id: started.id, deleted: true });
  });

  test('shows the log of a sandbox or its end, and follows it until the sandbox stops', async () => {
    const { id } = JSON.parse((await runSkep(['sandboxes', 'start', 'speaks', '--json'], env)).stdout) as { id: string };
    const log = () => runSkep(['logs', id], env);
    expect(await until(log, ({ stdout }) => stdout.includes('two'), 60_000)).toMatchObject({ code: 0, stdout: 'one\ntwo\n', stderr: '' });
    for (const [tail, stdout] of [['0', ''], ['1', 'two\n'], ['9', 'one\ntwo\n']] as const) {
      expect(await runSkep(['logs', id, '--tail', tail], env)).toMatchObject({ code: 0, stdout });
    }
    const following = run('logs', '-f', id);
    await following.sees('one\ntwo\n');
    const store = { SKEP_DATA_DIR: server.dataDir };
    const refused = runWith((await runSkep(['keys', 'create', 'other'], store)).stdout.trim(), 'logs', '-f', id);
    await refused.sees('one\ntwo\n');
    await runSkep(['keys', 'revoke', 'other'], store);
    expect([await refused.exitCode(), refused.shown()]).toEqual([1, expect.stringContaining('API key is missing, unknown, expired or revoked')]);
    await runSkep(['sandboxes', 'pause', id, '--kind', 'stop'], env);
    // The shell may report that it was terminated.
    expect([await following.exitCode(), following.shown()]).toEqual([0, expect.stringMatching(/^one\ntwo\n(?:Terminated\n)?$/)]);
    await runSkep(['sandboxes', 'delete', id], env);
  });

  test('shows both outputs of an execution, follows them, and ends it with a signal', async () => {
    const { id } = JSON.parse((await runSkep(['sandboxes', 'start', 'speaks', '--json'], env)).stdout) as { id: string };
    const begin = () => runSkep(['exec', '-d', id, '--', 'sh', '-c', 'echo one; echo two; echo bad >&2; exec sleep 1000'], env);
    const execution = (await until(begin, ({ code }) => code === 0, 60_000)).stdout.trim();
    const log = () => runSkep(['logs', id, execution], env);
    await until(log, ({ code, stdout, stderr }) => code === 0 && stdout === 'one\ntwo\n' && stderr === 'bad\n', 60_000);
    expect(await runSkep(['logs', id, execution, '-n', '1'], env)).toEqual({ code: 0, stdout: 'two\n', stderr: 'bad\n' });
    const following = run('logs', '-f', id, execution);
    await following.sees('two\n');
    expect(await runSkep(['kill', id, execution, '--signal', 'SIGNONE'], env)).toMatchObject({ code: 1, stderr: expect.stringContaining('--signal') });
    expect(await runSkep(['kill', id, execution], env)).toMatchObject({ code: 0, stderr: `SIGKILL is sent to ${execution}.\n` });
    expect(await following.exitCode()).toBe(0);
    expect((await runSkep(['executions', id], env)).stdout).toContain(`${execution}  exited  137`);
    expect(await runSkep(['logs', id, 'exec-none'], env)).toMatchObject({ code: 1, stderr: expect.stringContaining('exec-none') });
    await runSkep(['sandboxes', 'delete', id], env);
  });

  test('starts a sandbox with variables, metadata, a timeout and a secret', async () => {
    const start = ['sandboxes', 'start', 'told', '--json', '--env', 'LEVEL=a=b', '--metadata', 'task=4 2', '--timeout', '90s', '--secret', 'SKEP_TEST_TOKEN'];
    const { id, metadata, created_at, expires_at } = JSON.parse((await runSkep(start, env)).stdout) as Record<string, string>;
    expect([metadata, Date.parse(expires_at ?? '') - Date.parse(created_at ?? '')]).toEqual([{ task: '4 2' }, 90_000]);
    const call = createClient(server.url, key);
    const failed = await until(async () => object(await call('GET', `/api/v1/sandboxes/${String(id)}`)), (one) => one['status'] === 'ERROR', 60_000);
    // The value of the secret is masked in the output.
    expect(failed['status_reason']).toMatchObject({ output: expect.stringContaining('LEVEL is a=b, the token has 9 characters: **********') });
    const listed = async (pair: string) => (await runSkep(['sandboxes', 'list', '--metadata', pair], env)).stdout;
    expect(await listed('task=4 2')).toContain(id);
    expect(await listed('task=42')).not.toContain(id);
    for (const [args, words] of [
      [['--secret', 'PATH'], /--secret: must not name PATH: the spec allows only .*SKEP_TEST_TOKEN/],
      [['--cpus', '1'], /--cpus or --memory: /],
      [['--env', '=LEVEL'], /KEY=VALUE/],
      [['--timeout', '90'], /duration/],
      [['--memory', '1'], /size/],
    ] as const) expect(await runSkep(['sandboxes', 'start', 'told', ...args], env)).toMatchObject({ code: 1, stderr: expect.stringMatching(words) });
  });

  const waiting = [['logs', 'sb-1'], ['changes', 'conv-1', '--patch'], ['conversations', 'show', 'conv-1'], ['sandboxes', 'follow']];
  test.concurrent.each(waiting)('%s %s ends without a message at Ctrl-C, if the server has not answered', async (...args) => {
    const silent = createServer();
    await once(silent.listen(0, '127.0.0.1'), 'listening');
    const { port } = silent.address() as AddressInfo;
    const command = run(...args, '--url', `http://127.0.0.1:${port}`);
    await once(silent, 'request');
    command.interrupt();
    expect([await command.exitCode(), command.shown()]).toEqual([130, '']);
    silent.closeAllConnections();
    silent.close();
  });

  test('reports each error with its reason', async () => {
    const failing = async (args: readonly string[], words: RegExp, other = env) => expectError(await runHere(args, other), words);
    const failingProcess = async (args: readonly string[], words: RegExp) => expectError(await runSkep(args, env), words);
    const before = await runSkep(['conversations', '--json'], env);
    await failingProcess(['chat', '--spec', 'plain', '--once', '--message', 'hello'], /The spec plain names no agent.*--spec: coder/);
    expect(await runSkep(['conversations', '--json'], env)).toEqual(before);
    await failing(['chat', '--spec', 'none', '--once', '--message', 'hello'], /the spec: There is no sandbox spec "none"/);
    await failing(['chat', 'acme/none', '--once', '--message', 'hello'], /acme\/none/);
    await failing(['chat', 'acme/shop', '--conversation', 'conv-1', '--once'], /Leave out a repository with --conversation/);
    await failing(['chat', '--conversation', 'conv-1', '--branch', 'x', '--spec', 'plain', '--title', 'x', '--permissions', 'deny'],
      /Leave out --branch, --spec, --title, --permissions with --conversation/);
    await failingProcess(['conversations', 'follow', 'conv-none'], /no conversation "conv-none"/);
    await failing(['sandboxes', 'resume', 'sb-none'], /no sandbox "sb-none"/);
    for (const patch of [['--patch'], ['--file', 'a']]) await failing(['changes', 'conv-1', '--json', ...patch], /a patch is not JSON/);
    await failing(['sandboxes', 'delete', ''], /^skep: the id: must not be empty$/m);
    await failing(['exec', '', '--', 'ls'], /^skep: the id: must not be empty$/m);
    await failingProcess(['logs', 'sb-none', ''], /^skep: the execution: must not be empty$/m);
    await failing(['sandboxes', '--url', 'ftp://x'], /^skep: url: must be an http or https address, but is "ftp:\/\/x"$/m);
    await failingProcess(['logs', 'sb-none'], /no sandbox "sb-none"/);
    await failing(['logs', 'sb-none', '--tail', 'all'], /--tail.*Expected a whole number/);
    await failing(['sandboxes'], /SKEP_API_KEY/, { SKEP_PUBLIC_URL: server.url });
    await failingProcess(['sandboxes', 'strat'], /unknown command 'strat'[^]*Usage: skep sandboxes .*command/);
    await failing(['sandboxes'], /line feed/, { ...env, SKEP_API_KEY: 'one\ntwo' });
    await failing(['sandboxes'], /API key/, { ...env, SKEP_API_KEY: 'another-key-of-nobody' });
    await failingProcess(['sandboxes', 'follow', '--url', 'http://127.0.0.1:1'], /No Skep server answers at http:\/\/127\.0\.0\.1:1/);
  });
});
