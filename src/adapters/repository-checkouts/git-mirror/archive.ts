import { createReadStream } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { dotGitFiles, type DotGit } from './dot-git.ts';
import type { Git } from './git.ts';
import { tarEnd, tarHeader, tarPadding } from './tar.ts';
import { untilTarEnd } from './tar-end.ts';

const folders = ['', 'objects/', 'objects/info/', 'objects/pack/', 'refs/', 'refs/heads/', 'refs/tags/'];
const remoteFolders = ['refs/remotes/', 'refs/remotes/origin/'];

/** The parts of the archive: first the `.git`, so that the end is the one that git writes after the files. */
export async function* archiveParts(
  git: Git,
  dotGit: DotGit,
  exported: string | null,
  mtime: number,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const files = dotGitFiles(dotGit);
  for (const name of [...folders, ...(files.has('refs/remotes/origin/HEAD') ? remoteFolders : [])]) {
    yield tarHeader({ name: `.git/${name}`, kind: 'folder', mode: 0o755, size: 0, mtime });
  }
  for (const [name, text] of files) {
    const content = Buffer.from(text, 'utf8');
    yield tarHeader({ name: `.git/${name}`, kind: 'file', mode: 0o644, size: content.length, mtime });
    yield Buffer.concat([content, tarPadding(content.length)]);
  }
  if (exported === null || dotGit.oid === null) {
    yield tarEnd;
    return;
  }
  for (const name of await exportedNames(exported)) yield* fileParts(exported, name, mtime, signal);
  yield* workTree(git, exported, dotGit.oid, signal);
}

async function exportedNames(exported: string): Promise<string[]> {
  const packs = (await readdir(join(exported, 'objects/pack'))).map((name) => `objects/pack/${name}`);
  const hasShallow = (await readdir(exported)).includes('shallow');
  return [...packs, ...(hasShallow ? ['shallow'] : []), 'index'];
}

async function* fileParts(folder: string, name: string, mtime: number, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  const path = join(folder, name);
  const { size } = await stat(path);
  yield tarHeader({ name: `.git/${name}`, kind: 'file', mode: name.startsWith('objects/') ? 0o444 : 0o644, size, mtime });
  // As much as the header says, and no more.
  if (size > 0) yield* createReadStream(path, { end: size - 1, highWaterMark: 256 * 1024, signal }) as AsyncIterable<Buffer>;
  yield tarPadding(size);
}

/** The files as git checks them out, straight from its objects. A tree has no date, so that they are as of now. */
async function* workTree(git: Git, exported: string, oid: string, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  const args = ['-c', 'tar.umask=0022', 'archive', '--format=tar', `${oid}^{tree}`];
  const { stdout, exited, end } = git.start({ args, folder: exported, environment: { GIT_DIR: exported } }, signal);
  // Looked at below; where reading fails, that failure counts.
  exited.catch(() => null);
  try {
    yield* untilTarEnd(stdout as AsyncIterable<Buffer>);
    const exit = await exited;
    if (exit.code !== 0) throw new Error(`git ended with ${exit.signal ?? `exit code ${exit.code}`}: ${exit.stderr}`);
  } finally {
    end(new Error('nobody reads on'));
    await exited.catch(() => null);
  }
}
