import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Git } from './git-runner.ts';

/** What is kept of one repository. */
export interface Mirror {
  readonly id: string;
  readonly folder: string;
  /** A bare repository with every branch that was ever asked for. Its refs are named by digests: two names of branches never get in each other's way. */
  readonly gitDir: string;
  readonly exports: string;
  /** Its time of change is when the mirror was last used. */
  readonly used: string;
}

export function mirrorIn(mirrors: string, id: string): Mirror {
  const folder = join(mirrors, id);
  return { id, folder, gitDir: join(folder, 'repository.git'), exports: join(folder, 'exports'), used: join(folder, 'used') };
}

export function mirrorId(provider: string, repository: string): string {
  return digest(JSON.stringify([provider, repository]));
}

/** The ref of a branch; null is the commit that the host has checked out without one. */
export function refOf(branch: string | null): string {
  return `refs/skep/${digest(JSON.stringify(branch))}`;
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 40);
}

const sha256Digits = 64;

/** The configuration of a git folder of ours for objects that are named like this one. */
export function bareConfig(oid: string): string {
  const core = `[core]\n\trepositoryFormatVersion = ${oid.length === sha256Digits ? 1 : 0}\n\tbare = true\n[gc]\n\tauto = 0\n`;
  return oid.length === sha256Digits ? `${core}[extensions]\n\tobjectFormat = sha256\n` : core;
}

/** Makes the mirror's repository, for objects that are named like this one, if it is not there. It appears in one step. */
export async function makeMirror({ folder, gitDir, exports, used }: Mirror, oid: string, temporary: string): Promise<void> {
  const config = bareConfig(oid);
  await mkdir(exports, { recursive: true, mode: 0o700 });
  const present = await readFile(join(gitDir, 'config'), 'utf8').catch(() => null);
  if (present !== config || !(await isWhole(gitDir))) {
    await rm(gitDir, { recursive: true, force: true });
    await mkdir(join(temporary, 'objects'), { recursive: true });
    await mkdir(join(temporary, 'refs'));
    await writeFile(join(temporary, 'HEAD'), 'ref: refs/heads/none\n');
    await writeFile(join(temporary, 'config'), config);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await rename(temporary, gitDir);
  }
  await writeFile(used, '');
}

async function isWhole(gitDir: string): Promise<boolean> {
  const paths = ['HEAD', 'objects', 'refs'].map((name) => stat(join(gitDir, name)));
  return await Promise.all(paths).then(([head]) => (head?.size ?? 0) > 0, () => false);
}

/** The commit that the mirror has a ref at; null where it has none. */
export async function commitAt({ gitDir }: Mirror, ref: string): Promise<string | null> {
  const text = await readFile(join(gitDir, ref), 'latin1').catch(() => '');
  const oid = text.trimEnd();
  return /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/u.test(oid) ? oid : null;
}

/**
 * Removes what a git that was killed left behind, which would be in the way of the next, or stay for ever. Only to be
 * called while no other writes to the mirror.
 */
export async function removeLeftovers({ gitDir }: Mirror): Promise<void> {
  for (const folder of ['.', 'refs/skep', 'objects/pack', 'objects/info']) {
    const names = await readdir(join(gitDir, folder)).catch(() => []);
    const leftovers = names.filter((name) => name.endsWith('.lock') || name.startsWith('tmp_') || name.startsWith('.tmp-'));
    await Promise.all(leftovers.map((name) => rm(join(gitDir, folder, name), { recursive: true, force: true })));
  }
}

// Each fetch adds one, and each object is looked for in all.
const maxPacks = 40;

/** Puts what many fetches brought into one pack, and leaves out what no branch has any more. Only while nobody reads the mirror. */
export async function tidy(git: Git, { gitDir }: Mirror, signal: AbortSignal): Promise<void> {
  const names = await readdir(join(gitDir, 'objects/pack')).catch(() => []);
  if (names.filter((name) => name.endsWith('.pack')).length <= maxPacks) return;
  await git.run({ args: ['repack', '-a', '-d', '-q'], folder: gitDir, environment: { GIT_DIR: gitDir } }, signal);
}
