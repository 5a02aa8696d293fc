import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const executable = join(import.meta.dirname, '../../src/composition/executable/main.ts');

export interface ServerOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** What `SKEP_CONFIG` names, as JSON, which is YAML too. */
  readonly config?: unknown;
  /** A folder of its own where it is left out. */
  readonly dataDir?: string;
  readonly cwd?: string;
}

/** The executable, started as a process of its own. */
export interface Server {
  readonly url: string;
  readonly dataDir: string;
  readonly process: ChildProcess;
  /** Its exit code, when it has ended. */
  readonly exited: Promise<number | null>;
  /** What it wrote so far. */
  output(): { readonly stdout: string; readonly stderr: string };
  /** SIGTERM, and the exit code that follows. */
  stop(): Promise<number | null>;
  /** SIGKILL, and the end that follows. */
  kill(): Promise<void>;
}

/** The environment of the executable: nothing of Skep's from outside. */
export function cleanEnv(env: Readonly<Record<string, string>> = {}): Record<string, string> {
  const kept = Object.entries(process.env).filter(([name, value]) => value !== undefined && !name.startsWith('SKEP_'));
  return { ...(Object.fromEntries(kept) as Record<string, string>), ...env };
}

/** A temporary folder, and how to remove it. */
export async function temporaryFolder(): Promise<string> {
  return await mkdtemp(join(tmpdir(), 'skep-test-'));
}

/** Starts the executable on a free port and answers when it listens. Rejects with what it wrote where it ends before. */
export async function startServer(options: ServerOptions = {}): Promise<Server> {
  const dataDir = options.dataDir ?? (await temporaryFolder());
  const env = cleanEnv({ SKEP_PORT: '0', SKEP_DATA_DIR: dataDir, SKEP_SANDBOX_RUNTIME: 'process', ...options.env });
  if (options.config !== undefined) {
    env['SKEP_CONFIG'] = join(await temporaryFolder(), 'skep.json');
    await writeFile(env['SKEP_CONFIG'], JSON.stringify(options.config));
  }
  const child = spawn(process.execPath, [executable, 'serve'], { env, cwd: options.cwd ?? tmpdir(), stdio: ['ignore', 'pipe', 'pipe'] });
  const output = { stdout: '', stderr: '' };
  const exited = once(child, 'exit') as Promise<[number | null]>;
  child.stderr.setEncoding('utf8').on('data', (text: string) => (output.stderr += text));
  const { promise: listening, resolve } = Promise.withResolvers<string>();
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output.stdout += text;
    const url = /listens on (\S+)/.exec(output.stdout)?.[1];
    if (url !== undefined && output.stdout.includes('Try:')) resolve(url);
  });
  const url = await Promise.race([listening, exited.then(([code]) => failed(code, output))]);
  return {
    url,
    dataDir,
    process: child,
    exited: exited.then(([code]) => code),
    output: () => ({ ...output }),
    async stop() {
      child.kill('SIGTERM');
      return (await exited)[0];
    },
    async kill() {
      child.kill('SIGKILL');
      await exited;
    },
  };
}

function failed(code: number | null, { stdout, stderr }: { stdout: string; stderr: string }): never {
  throw new Error(`the server ended with ${code}:\n${stdout}\n${stderr}`);
}

/** Runs the executable to its end. */
export async function runSkep(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const child = spawn(process.execPath, [executable, ...args], { env: cleanEnv(env), stdio: ['ignore', 'pipe', 'pipe'] });
  const output = { stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output.stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (output.stderr += text));
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, ...output };
}

export async function removeFolder(path: string): Promise<void> {
  await rm(path, { recursive: true, force: true });
}
