import { access, chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { onTestFinished, vi } from 'vitest';
import { createLocalGitProvider, type LocalGitOptions } from '../../../../src/adapters/git-provider/local/index.ts';
import type { FileQuery, GitProvider } from '../../../../src/ports/git-provider.ts';
import { createRepository, type RepositoryDescription } from '../../../contracts/git-repository.ts';
import { runGit } from '../../../contracts/work-tree.ts';

export const agents = '.skep/microagents';
export const start = 1_600_000_000;
export const everything: FileQuery = { directory: () => agents, accepts: () => true };

/** Two files, a change of one, and something else. */
export const simple: RepositoryDescription = {
  commits: [
    { id: 'first', at: start, files: [[`${agents}/a.md`, '1']] },
    { id: 'second', at: start + 10, files: [[`${agents}/deploy/b.md`, '1']] },
    { id: 'third', at: start + 20, files: [[`${agents}/a.md`, '2'], ['src/x', '1']] },
  ],
};

export const simpleListing: readonly (readonly [string, number])[] = [
  [`${agents}/a.md`, start],
  [`${agents}/deploy/b.md`, start + 10],
];

/** A folder that goes away after the test. */
export async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'skep-local-git-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

export function providerOf(options: LocalGitOptions): GitProvider {
  const provider = createLocalGitProvider(options);
  onTestFinished(() => provider.close());
  return provider;
}

/** Makes a bare repository below a root. */
export async function bare(root: string, name: string, description: RepositoryDescription = simple): Promise<string> {
  const gitDir = join(root, name);
  await mkdir(dirname(gitDir), { recursive: true });
  await createRepository(gitDir, description);
  return gitDir;
}

/** Runs git in a folder, without anybody's configuration. */
export async function gitIn(folder: string, ...args: readonly string[]): Promise<string> {
  return await runGit(folder, args);
}

export async function list(
  provider: GitProvider,
  repository: string,
  signal?: AbortSignal,
): Promise<(readonly [string, number])[]> {
  const { files } = await provider.listFiles(repository, everything, signal);
  return files
    .map(({ path, createdAt }) => [path, createdAt / 1000] as const)
    .toSorted(([a], [b]) => (a < b ? -1 : Number(a > b)));
}

/** A program that stands in for git: a shell script, which may go on with `exec git "$@"`. */
export async function script(folder: string, body: string): Promise<string> {
  const path = join(folder, 'fake-git');
  await writeFile(path, `#!/bin/sh\n${body}\n`);
  await chmod(path, 0o755);
  return path;
}

/** Git, and a count of the processes that were started. */
export async function countedGit(): Promise<{ readonly binary: string; count(): Promise<number> }> {
  const folder = await temporaryFolder();
  const log = join(folder, 'log');
  const binary = await script(folder, `echo "$1" >> '${log}'\nexec git "$@"`);
  return {
    binary,
    async count() {
      return (await exists(log)) ? (await readFile(log, 'utf8')).split('\n').length - 1 : 0;
    },
  };
}

export async function exists(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  );
}

/** Waits until the condition holds. */
export async function until(condition: () => Promise<boolean>): Promise<void> {
  await vi.waitUntil(condition, { timeout: 20_000, interval: 10 });
}

/** Expects a failure whose message tells nothing of this machine. */
export async function failureOf(promise: Promise<unknown>): Promise<string> {
  const error = await promise.then(
    () => null,
    (error: unknown) => error,
  );
  if (!(error instanceof Error) || !('code' in error)) throw new Error('expected a failure', { cause: error });
  if (error.message.includes(tmpdir())) throw new Error(`the message holds a path: ${error.message}`);
  return error.message.replace(' ', ': ');
}
