import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { items } from '../support/client.ts';
import { cleanEnv, executable, runSkep, runSkepWithInput, startServedSandbox, type ServedSandbox } from '../support/server.ts';

let served: ServedSandbox;
let sandbox = '';
let env: ServedSandbox['env'];

beforeAll(async () => {
  served = await startServedSandbox();
  ({ id: sandbox, env } = served);
});
afterAll(() => served[Symbol.asyncDispose]());

describe('skep exec', () => {
  test('runs a command with separate stdout and stderr, and exits with its exit code', async () => {
    const script = 'echo "$GREETING $PERSON${NOBODY+, who is not set,} $1"; echo oops >&2; exit 42';
    const args = ['exec', '-e', 'GREETING=hello', '-e', 'PERSON', '-e', 'NOBODY', sandbox, '--', 'sh', '-c', script, 'sh', '--there'];
    expect(await runSkep(args, { ...env, PERSON: 'Ann' })).toEqual({ code: 42, stdout: 'hello Ann --there\n', stderr: 'oops\n' });
    const left = await served.call('GET', `/api/v1/sandboxes/${sandbox}/executions`);
    expect(items(left)).toEqual([]);
  });

  test('passes binary input and output unchanged', async () => {
    // More than all buffers on the way hold together.
    const bytes = Buffer.from(Uint8Array.from({ length: 24_000_000 }, (_, index) => (index * 7 + (index >> 8)) % 256));
    const { code, stdout } = await runSkepWithInput(['exec', '-i', sandbox, 'cat'], env, bytes);
    expect([code, stdout.equals(bytes)]).toEqual([0, true]);
  });

  test('makes the command wait for a slow reader, so no output is dropped', async () => {
    const child = spawn(process.execPath, [executable, 'exec', sandbox, 'head', '-c', String(96 << 20), '/dev/zero'], {
      env: cleanEnv(env), stdio: ['ignore', 'pipe', 'inherit'],
    });
    const exited = once(child, 'exit');
    let bytes = 0;
    for await (const part of child.stdout) {
      bytes += Buffer.from(part).length;
      await pause(1);
    }
    expect([bytes, await exited]).toEqual([96 << 20, [0, null]]);
  });

  test('passes SIGTERM to the command', async () => {
    const child = spawn(process.execPath, [executable, 'exec', sandbox, 'sh', '-c', 'echo ready; exec sleep 1000'], {
      env: cleanEnv(env), stdio: ['ignore', 'pipe', 'inherit'],
    });
    await once(child.stdout, 'data');
    const exited = once(child, 'exit') as Promise<[number | null]>;
    child.kill('SIGTERM');
    expect((await exited)[0]).toBeGreaterThan(128);
  });

  test.each([['--help'], ['sandboxes', 'list'], ['exec', 'SANDBOX', '--', 'sh', '-c', 'yes']])(
    'exits with 141 and no message if its output is closed: %s', async (...args) => {
      const child = spawn(process.execPath, [executable, ...args.map((arg) => arg === 'SANDBOX' ? sandbox : arg)], {
        env: cleanEnv(env), stdio: ['ignore', 'pipe', 'pipe'],
      });
      child.stdout.destroy();
      const [said, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')]);
      expect([code, said]).toEqual([141, '']);
      expect(items(await served.call('GET', `/api/v1/sandboxes/${sandbox}/executions`))).toEqual([]);
    });

  test('says why the output can not be written', async () => {
    const child = spawn('sh', ['-c', `exec '${process.execPath}' '${executable}' sandboxes >/dev/full`], { env: cleanEnv(env), stdio: ['ignore', 'pipe', 'pipe'] });
    const [said, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')]);
    expect([code, said]).toEqual([1, "skep: Can't write the output: ENOSPC: no space left on device, write\n"]);
  });

  test('runs a command in a terminal', async () => {
    expect(await runSkep(['exec', '-t', sandbox, 'tty'], env)).toMatchObject({ code: 0, stdout: expect.stringMatching(/^\/dev\/pts\/\d+\r\n$/) });
  });

  test('reports each error on stderr', async () => {
    expect(await runSkep(['exec', 'sb-none', 'ls'], env)).toMatchObject({ code: 1, stderr: expect.stringContaining('There is no sandbox') });
    expect(await runSkep(['exec', '-it', sandbox, 'ls'], env)).toMatchObject({ code: 1, stderr: expect.stringContaining('is not a terminal') });
    expect(await runSkep(['shell', sandbox], env)).toMatchObject({ code: 1, stderr: expect.stringContaining('skep -- exec` without -t') });
    expect(await runSkep(['exec', '--help'])).toMatchObject({ code: 0, stdout: expect.not.stringContaining('(default') });
    expect(await runSkep(['exec', '-e', '=X', sandbox, 'ls'], env)).toMatchObject({ code: 1, stderr: expect.stringContaining('KEY=VALUE') });
  });
});
