import { lstat, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Confined } from './confined.ts';
import { failed } from './failures.ts';

export interface GitDirs {
  readonly gitDir: string;
  readonly commonDir: string;
}

const linkLimitBytes = 8192;

/** The git folders of a work tree or a bare repository at a real path; null where there is no repository. */
export async function findGitDirs(root: Confined, folder: string): Promise<GitDirs | null> {
  return (await ofWorkTree(root, folder)) ?? (await ofGitDir(root, folder));
}

async function ofWorkTree(root: Confined, folder: string): Promise<GitDirs | null> {
  const dotGit = join(folder, '.git');
  const kind = await kindOf(dotGit);
  if (kind === 'none') return null;
  const gitDir = kind === 'file' ? await followLink(root, folder, dotGit) : await root.resolve(dotGit);
  if (gitDir === null) throw leadsOut();
  return await ofGitDir(root, gitDir);
}

/** A `.git` file names the git folder of a linked work tree or of a submodule. */
async function followLink(root: Confined, folder: string, dotGit: string): Promise<string | null> {
  const target = /^gitdir: (.+?)\r?\n*$/su.exec((await readText(root, dotGit)) ?? '')?.[1];
  return target === undefined ? null : await root.resolve(resolve(folder, target));
}

async function ofGitDir(root: Confined, gitDir: string): Promise<GitDirs | null> {
  const [head, commonDir] = await Promise.all([kindOf(join(gitDir, 'HEAD')), commonDirOf(root, gitDir)]);
  if (head === 'none') return null;
  const kinds = await Promise.all(['objects', 'refs'].map((name) => kindOf(join(commonDir, name))));
  return kinds.every((kind) => kind === 'folder') ? { gitDir, commonDir } : null;
}

async function commonDirOf(root: Confined, gitDir: string): Promise<string> {
  const text = await readText(root, join(gitDir, 'commondir'));
  if (text === null) return gitDir;
  const commonDir = await root.resolve(resolve(gitDir, text.trimEnd()));
  if (commonDir === null) throw leadsOut();
  return commonDir;
}

async function readText(root: Confined, path: string): Promise<string | null> {
  return (await root.read(path, linkLimitBytes))?.toString('utf8') ?? null;
}

// A legacy HEAD may be a link to a branch that has no commit yet, so a link that leads nowhere counts as a file.
async function kindOf(path: string): Promise<'none' | 'file' | 'folder'> {
  const stats = await stat(path)
    .catch(() => lstat(path))
    .catch(() => null);
  if (stats === null) return 'none';
  return stats.isDirectory() ? 'folder' : 'file';
}

// One answer for a folder outside and for one that is missing, so that nobody can ask what exists outside.
function leadsOut(): Error {
  return failed("the repository's git folder is missing or lies outside the root folder");
}
