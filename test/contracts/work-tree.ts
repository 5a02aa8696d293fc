import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { lstat, mkdir, readdir, readFile, readlink } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import type { Execution, ExecutionRequest } from '../../src/ports/sandbox-runtime.ts';
import type { Checkout } from '../../src/ports/repository-checkouts.ts';
import { gitEnvironment } from './git-repository.ts';

/** An unpacked archive. */
export interface WorkTree extends Pick<Checkout, 'branch' | 'commit'> {
  readonly folder: string;
  /** Contents by path, without `.git`: the text of a file, `executable: ` and the text, or `link: ` and the target. */
  readonly files: Readonly<Record<string, string>>;
  /** Runs git in the work tree without any configuration. Returns its output. */
  readonly git: (...args: readonly string[]) => Promise<string>;
}

/** Unpacks an archive into a new folder, with the tar program. */
export async function openWorkTree({ branch, commit, archive }: Checkout, folder: string): Promise<WorkTree> {
  await unpack(archive, folder);
  const names = await readdir(folder, { recursive: true, withFileTypes: true });
  const paths = names.map((entry) => relative(folder, join(entry.parentPath, entry.name))).filter((path) => !/^\.git(?:\/|$)/u.test(path));
  const files: Record<string, string> = {};
  for (const path of paths.toSorted()) {
    const content = await contentOf(join(folder, path));
    if (content !== null) files[path] = content;
  }
  return { branch, commit, folder, files, git: (...args) => runGit(folder, args) };
}

async function unpack(archive: ReadableStream<Uint8Array>, folder: string): Promise<void> {
  await mkdir(folder);
  const tar = spawn('tar', ['-x', '--no-same-owner', '-C', folder], { stdio: ['pipe', 'ignore', 'pipe'] });
  let stderr = '';
  tar.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  const ended = once(tar, 'close');
  await pipeline(Readable.fromWeb(archive), tar.stdin);
  const [code] = await ended;
  if (code !== 0) throw new Error(`tar ended with ${code}: ${stderr}`);
}

/** Returns the content of one path. Null for a folder. */
async function contentOf(path: string): Promise<string | null> {
  const stats = await lstat(path);
  if (stats.isDirectory()) return null;
  if (stats.isSymbolicLink()) return `link: ${await readlink(path)}`;
  const text = await readFile(path, 'utf8');
  return (stats.mode & 0o111) === 0 ? text : `executable: ${text}`;
}

/** Runs git in a folder, without any configuration. */
export async function runGit(folder: string, args: readonly string[]): Promise<string> {
  const { stdout } = await promisify(execFile)('git', ['-C', folder, ...args], { env: gitEnvironment, maxBuffer: 64 * 1024 * 1024 });
  return stdout.trim();
}

/** Runs a command in a folder, as a runtime does in a sandbox. */
export async function executeIn(folder: string, command: ExecutionRequest['command']): Promise<Execution> {
  const [program = '', ...args] = command;
  const child = spawn(program, args, { cwd: folder, env: { PATH: process.env['PATH'], HOME: folder } });
  return {
    stdin: Writable.toWeb(child.stdin),
    stdout: Readable.toWeb(child.stdout) as ReadableStream<Uint8Array>,
    stderr: Readable.toWeb(child.stderr) as ReadableStream<Uint8Array>,
    exited: once(child, 'close').then(([code]) => code as number | null),
    kill: async () => void child.kill('SIGKILL'),
  };
}
