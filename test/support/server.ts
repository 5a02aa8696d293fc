import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer, text } from 'node:stream/consumers';
import { afterAll } from 'vitest';
import { createClient, object, type Client, type Json } from './client.ts';
import { killSandboxes } from './processes.ts';
import { until } from './until.ts';

export const executable = join(import.meta.dirname, '../../src/composition/executable/main.ts');

export interface ServerOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** The content of the `SKEP_CONFIG` file. It is written as JSON, which is also YAML. */
  readonly config?: unknown;
  /** Default: a new temporary folder. */
  readonly dataDir?: string;
  readonly cwd?: string;
  /** A file for standard error. Default: a pipe. */
  readonly stderr?: number;
}

/** The executable in its own process. */
export interface Server {
  /** Once the server has ended or is killed: a URL at which nothing answers, because the server of another test may get the free port. */
  readonly url: string;
  readonly dataDir: string;
  readonly process: ChildProcess;
  /** Resolves to the exit code when the process has ended. */
  readonly exited: Promise<number | null>;
  /** Returns the output until now. */
  output(): { readonly stdout: string; readonly stderr: string };
  /** Sends SIGTERM. Resolves to the exit code. */
  stop(): Promise<number | null>;
  /** Sends SIGKILL. Resolves when the process has ended. */
  kill(): Promise<void>;
  /** Stops the server, kills its sandboxes and removes its data folder. */
  close(): Promise<void>;
}

/** Returns an environment for the executable, without the `SKEP_` variables of the test's own process. */
export function cleanEnv(env: Readonly<Record<string, string>> = {}): Record<string, string> {
  const kept = Object.entries(process.env).filter(([name, value]) => value !== undefined && !name.startsWith('SKEP_'));
  return { ...(Object.fromEntries(kept) as Record<string, string>), ...env };
}

/** No server gets this port. */
const unreachableUrl = 'http://127.0.0.1:1';

/** Makes a temporary folder. The caller removes it. */
export async function temporaryFolder(): Promise<string> {
  return await mkdtemp(join(tmpdir(), 'skep-test-'));
}

/** Creates a folder for the servers of a test file. After its tests, kills the processes of the sandboxes in it, and removes it. */
export function folderForServers(): string {
  const folder = mkdtempSync(join(tmpdir(), 'skep-test-'));
  afterAll(async () => {
    killSandboxes(folder);
    await removeFolder(folder);
  });
  return folder;
}

/** Starts the executable on a free port. Resolves when it listens. Rejects with its output if it ends before. */
export async function startServer(options: ServerOptions = {}): Promise<Server> {
  const dataDir = options.dataDir ?? (await temporaryFolder());
  const env = cleanEnv({ SKEP_PORT: '0', SKEP_DATA_DIR: dataDir, SKEP_SANDBOX_RUNTIME: 'process', ...options.env });
  const configFolder = options.config === undefined ? null : await temporaryFolder();
  if (configFolder !== null) {
    env['SKEP_CONFIG'] = join(configFolder, 'skep.json');
    await writeFile(env['SKEP_CONFIG'], JSON.stringify(options.config));
  }
  const child = spawn(process.execPath, [executable, 'serve'], { env, cwd: options.cwd ?? tmpdir(), stdio: ['ignore', 'pipe', options.stderr ?? 'pipe'] });
  const output = { stdout: '', stderr: '' };
  const exited = once(child, 'exit') as Promise<[number | null]>;
  child.stderr?.setEncoding('utf8').on('data', (part: string) => (output.stderr += part));
  const { promise: listening, resolve } = Promise.withResolvers<string>();
  child.stdout?.setEncoding('utf8').on('data', (part: string) => {
    output.stdout += part;
    const url = /listens on (\S+)/.exec(output.stdout)?.[1];
    if (url !== undefined && output.stdout.includes('Try:')) resolve(url);
  });
  const started = Promise.race([listening, exited.then(([code]) => failed(code, output))]);
  await Promise.allSettled([started]);
  if (configFolder !== null) await removeFolder(configFolder);
  const url = await started;
  const stop = async (): Promise<number | null> => {
    child.kill('SIGTERM');
    return (await exited)[0];
  };
  let isKilled = false;
  return {
    get url() {
      return isKilled || child.exitCode !== null || child.signalCode !== null ? unreachableUrl : url;
    },
    dataDir,
    process: child,
    exited: exited.then(([code]) => code),
    output: () => ({ ...output }),
    stop,
    async kill() {
      isKilled = true;
      child.kill('SIGKILL');
      await exited;
    },
    async close() {
      await stop();
      killSandboxes(dataDir);
      await removeFolder(dataDir);
    },
  };
}

function failed(code: number | null, { stdout, stderr }: { stdout: string; stderr: string }): never {
  throw new Error(`the server ended with ${code}:\n${stdout}\n${stderr}`);
}

/** Runs the executable to its end. */
export async function runSkep(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const { stdout, ...ended } = await runSkepWithInput(args, env, '');
  return { ...ended, stdout: stdout.toString() };
}

/** Runs the executable to its end, with this standard input. */
export async function runSkepWithInput(
  args: readonly string[], env: Readonly<Record<string, string>>, input: string | Uint8Array,
): Promise<{ code: number | null; stdout: Buffer; stderr: string }> {
  const child = spawn(process.execPath, [executable, ...args], { env: cleanEnv(env), stdio: 'pipe' });
  const closed = once(child, 'close') as Promise<[number | null]>;
  child.stdin.end(input);
  const [[code], stdout, stderr] = await Promise.all([closed, buffer(child.stdout), text(child.stderr)]);
  return { code, stdout, stderr };
}

/** Starts a sandbox, and returns it when it is RUNNING. */
export async function startSandbox(call: Client, request: Json = {}): Promise<Json & { readonly id: string }> {
  const id = String(object(await call('POST', '/api/v1/sandboxes', request))['id']);
  const found = await until(async () => object(await call('GET', `/api/v1/sandboxes/${id}`)), ({ status }) => status === 'RUNNING', 90_000);
  return { ...found, id };
}

/** A sandbox on its own server. */
export interface ServedSandbox extends AsyncDisposable {
  readonly id: string;
  /** The environment with which the executable reaches the server. */
  readonly env: Readonly<Record<string, string>>;
  readonly call: Client;
}

/** Starts a server with this configuration, and a sandbox of its default spec. */
export async function startServedSandbox(config?: unknown): Promise<ServedSandbox> {
  const key = 'a-static-key-of-the-tests';
  const server = await startServer({ env: { SKEP_API_KEY: key }, config });
  const call = createClient(server.url, key);
  const { id } = await startSandbox(call);
  return {
    id,
    env: { SKEP_API_KEY: key, SKEP_PUBLIC_URL: server.url },
    call,
    [Symbol.asyncDispose]: () => server.close(),
  };
}

export async function removeFolder(path: string): Promise<void> {
  await rm(path, { recursive: true, force: true });
}
