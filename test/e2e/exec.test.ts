import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createClient, items, object } from '../support/client.ts';
import { killSandboxes } from '../support/processes.ts';
import { cleanEnv, removeFolder, runSkep, startServer, type Server } from '../support/server.ts';
import { until } from '../support/until.ts';

const executable = join(import.meta.dirname, '../../src/composition/executable/main.ts');
const key = 'a-static-key-for-exec';
let server: Server;
let sandbox = '';
let env: Record<string, string>;

beforeAll(async () => {
  server = await startServer({ env: { SKEP_API_KEY: key } });
  env = { SKEP_API_KEY: key, SKEP_PUBLIC_URL: server.url };
  const call = createClient(server.url, key);
  sandbox = String(object(await call('POST', '/api/v1/sandboxes', {}))['id']);
  await until(() => call('GET', `/api/v1/sandboxes/${sandbox}`), (answer) => object(answer)['status'] === 'RUNNING');
});
afterAll(async () => {
  await server.stop();
  killSandboxes(server.dataDir);
  await removeFolder(server.dataDir);
});

/** Runs the executable, with something to write to it. */
async function withInput(args: readonly string[], input: string | Uint8Array): Promise<{ code: number | null; stdout: Buffer }> {
  const child = spawn(process.execPath, [executable, ...args], { env: cleanEnv(env), stdio: ['pipe', 'pipe', 'inherit'] });
  const parts: Buffer[] = [];
  child.stdout.on('data', (part: Buffer) => void parts.push(part));
  child.stdin.end(input);
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, stdout: Buffer.concat(parts) };
}

describe('skep exec', () => {
  test('runs a command, tells its outputs apart, and exits with its exit code', async () => {
    const script = 'echo "$GREETING $1"; echo oops >&2; exit 42';
    const args = ['exec', '-e', 'GREETING=hello', sandbox, '--', 'sh', '-c', script, 'sh', '--there'];
    expect(await runSkep(args, env)).toEqual({ code: 42, stdout: 'hello --there\n', stderr: 'oops\n' });
    const left = await createClient(server.url, key)('GET', `/api/v1/sandboxes/${sandbox}/executions`);
    expect(items(left)).toEqual([]);
  });

  test('hands bytes on as they are, up to the end of the input', async () => {
    const bytes = Buffer.from(Array.from({ length: 3_000_000 }, (_, index) => (index * 7) % 256));
    const { code, stdout } = await withInput(['exec', '-i', sandbox, 'cat'], bytes);
    expect([code, stdout.equals(bytes)]).toEqual([0, true]);
  });

  test('hands a signal on', async () => {
    const child = spawn(process.execPath, [executable, 'exec', sandbox, 'sh', '-c', 'echo ready; exec sleep 1000'], {
      env: cleanEnv(env), stdio: ['ignore', 'pipe', 'inherit'],
    });
    await once(child.stdout, 'data');
    const exited = once(child, 'exit') as Promise<[number | null]>;
    child.kill('SIGTERM');
    expect((await exited)[0]).toBeGreaterThan(128);
  });

  test('runs a command in a terminal', async () => {
    expect(await runSkep(['exec', '-t', sandbox, 'tty'], env)).toMatchObject({ code: 0, stdout: expect.stringMatching(/^\/dev\/pts\/\d+\r\n$/) });
  });

  test('says what is wrong', async () => {
    expect(await runSkep(['exec', 'sb-none', 'ls'], env)).toMatchObject({ code: 1, stderr: expect.stringContaining('There is no sandbox') });
    expect(await runSkep(['exec', '-it', sandbox, 'ls'], env)).toMatchObject({ code: 1, stderr: expect.stringContaining('no terminal') });
    expect(await runSkep(['exec', '-e', 'X', sandbox, 'ls'], env)).toMatchObject({ code: 1, stderr: expect.stringContaining('NAME=VALUE') });
  });
});
