import { access, chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { onTestFinished } from 'vitest';
import { createLocalGitProvider, type LocalGitOptions } from '../../../../src/adapters/git-provider/local/index.ts';
import type { GitProvider } from '../../../../src/ports/git-provider.ts';
import { createRepository, type RepositoryDescription } from '../../../contracts/git-repository.ts';
import { runGit } from '../../../contracts/work-tree.ts';
import { simple } from '../support.ts';

/** Creates a folder that is removed after the test. */
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

/** Creates a bare repository below a root. */
export async function bare(root: string, name: string, description: RepositoryDescription = { commits: simple }): Promise<string> {
  const gitDir = join(root, name);
  await mkdir(dirname(gitDir), { recursive: true });
  await createRepository(gitDir, description);
  return gitDir;
}

/** Runs git in a folder, without the configuration of the user or the system. */
export async function gitIn(folder: string, ...args: readonly string[]): Promise<string> {
  return await runGit(folder, args);
}

/** Writes a shell script that replaces git. It may end with `exec git "$@"`. */
export async function script(folder: string, body: string): Promise<string> {
  const path = join(folder, 'fake-git');
  await writeFile(path, `#!/bin/sh\n${body}\n`);
  await chmod(path, 0o755);
  return path;
}

/** A git that counts its processes. */
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
