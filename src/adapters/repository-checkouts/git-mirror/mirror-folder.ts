import { hash } from 'node:crypto';
import { copyFile, mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type GitRunner, makeGitFolder, oidForm, privateGitConfig } from '../../shared/git-process.ts';
import { ignoring } from '../../shared/system-errors.ts';
import { requireSuccess } from './git-failures.ts';

export interface Mirror {
  readonly id: string;
  readonly folder: string;
  /** A bare repository with every branch that was ever checked out. Refs are named by digests, so that no two names conflict. */
  readonly gitDir: string;
  /** A folder for each commit that was checked out lately: the content of a work tree's `.git`, from which archives are made. */
  readonly exports: string;
  /** An empty file. Its modification time is when the mirror was last used. */
  readonly used: string;
}

export function mirrorIn(mirrors: string, id: string): Mirror {
  const folder = join(mirrors, id);
  return { id, folder, gitDir: join(folder, 'repository.git'), exports: join(folder, 'exports'), used: join(folder, 'used') };
}

export function mirrorId(provider: string, repository: string): string {
  return digest(JSON.stringify([provider, repository]));
}

/** Returns the ref of a branch. Null means the host's detached HEAD. */
export function refOf(branch: string | null): string {
  return `refs/skep/${digest(JSON.stringify(branch))}`;
}

function digest(text: string): string {
  return hash('sha256', text).slice(0, 40);
}

/** Creates the mirror's repository in one step, unless it exists. The length of `oid` selects SHA-1 or SHA-256. */
export async function makeMirror({ folder, gitDir, exports, used }: Mirror, oid: string, temporary: string): Promise<void> {
  await mkdir(exports, { recursive: true, mode: 0o700 });
  const present = await readFile(join(gitDir, 'config'), 'utf8').catch(() => null);
  if (present !== privateGitConfig(oid) || !(await isComplete(gitDir))) {
    await rm(gitDir, { recursive: true, force: true });
    await makeGitFolder(temporary, oid);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await rename(temporary, gitDir);
  }
  await writeFile(used, '');
}

async function isComplete(gitDir: string): Promise<boolean> {
  const paths = ['HEAD', 'objects', 'refs'].map((name) => stat(join(gitDir, name)));
  return await Promise.all(paths).then(([head]) => (head?.size ?? 0) > 0, () => false);
}

/** Returns the commit of a ref of the mirror. Null if there is no such ref. */
export async function commitAt({ gitDir }: Mirror, ref: string): Promise<string | null> {
  const oid = (await readFile(join(gitDir, ref), 'latin1').catch(() => '')).trimEnd();
  return oidForm.test(oid) ? oid : null;
}

/** Removes the locks and temporary files of a git that was killed. No other git may write to the mirror meanwhile. */
export async function removeLeftovers({ gitDir }: Mirror): Promise<void> {
  for (const folder of ['.', 'refs/skep', 'objects/pack', 'objects/info']) {
    const names = await readdir(join(gitDir, folder)).catch(() => []);
    const leftovers = names.filter((name) => name.endsWith('.lock') || name.startsWith('tmp_') || name.startsWith('.tmp-'));
    await Promise.all(leftovers.map((name) => rm(join(gitDir, folder, name), { recursive: true, force: true })));
  }
}

// Each fetch adds a pack, and git looks for each object in all of them.
const maxPacks = 40;

/** Joins many packs into one, without unreachable objects. Nobody may read the mirror meanwhile. */
export async function repack(git: GitRunner, { gitDir }: Mirror, signal: AbortSignal): Promise<void> {
  const names = await readdir(join(gitDir, 'objects/pack')).catch(() => []);
  if (names.filter((name) => name.endsWith('.pack')).length <= maxPacks) return;
  await git.run({ args: ['repack', '-a', '-d', '-q'], folder: gitDir }, signal);
}

export function exportOf({ exports }: Mirror, oid: string): string {
  return join(exports, oid);
}

/** The last file in the archive of an export: the text file that git writes into every new `.git`. */
export const lastFileName = 'description';

/** Makes the content of a work tree's `.git`: an index, one commit and its history, and nothing of other branches. */
export async function makeExport(git: GitRunner, mirror: Mirror, oid: string, folder: string, signal: AbortSignal): Promise<void> {
  await makeGitFolder(folder, oid, { head: oid });
  await Promise.all(['objects/pack', 'info'].map((name) => mkdir(join(folder, name))));
  await Promise.all([
    writeFile(join(folder, lastFileName), "Unnamed repository; edit this file 'description' to name the repository.\n"),
    // Otherwise `git archive` leaves out files, and changes contents, as the repository's attributes say.
    writeFile(join(folder, 'info/attributes'), '* -export-ignore -export-subst\n'),
    copyFile(join(mirror.gitDir, 'shallow'), join(folder, 'shallow')).catch(ignoring('ENOENT')),
  ]);
  const { gitDir } = mirror;
  const packArgs = ['pack-objects', '--quiet', '--revs', '--delta-base-offset', join(folder, 'objects/pack/pack')];
  const results = await Promise.allSettled([
    git.run({ folder: gitDir, args: packArgs, input: `${oid}\n` }, signal),
    git.run({ folder: gitDir, environment: { GIT_INDEX_FILE: join(folder, 'index') }, args: ['read-tree', oid] }, signal),
  ]);
  for (const result of results) {
    if (result.status === 'rejected') throw result.reason;
    requireSuccess(result.value, git.provider);
  }
}
