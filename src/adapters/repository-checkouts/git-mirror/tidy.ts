import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Git } from './git.ts';
import type { Mirror } from './mirror.ts';

// Each fetch adds one, and each object is looked for in all.
const maxPacks = 40;

/** Puts what many fetches brought into one pack, and leaves out what no branch has any more. Only while nobody reads the mirror. */
export async function tidy(git: Git, { gitDir }: Mirror, signal: AbortSignal): Promise<void> {
  const names = await readdir(join(gitDir, 'objects/pack')).catch(() => []);
  if (names.filter((name) => name.endsWith('.pack')).length <= maxPacks) return;
  await git.run({ args: ['repack', '-a', '-d', '-q'], folder: gitDir, environment: { GIT_DIR: gitDir } }, signal);
}
