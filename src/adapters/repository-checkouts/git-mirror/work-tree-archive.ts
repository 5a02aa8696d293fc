import { createReadStream } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { GitIdentity } from '../../../domain/change.ts';
import type { WorkTreeRequest } from '../../../ports/repository-checkouts.ts';
import { type GitRunner, isSha256 } from '../../shared/git-process.ts';
import { tarEnd, tarEntry } from '../../shared/packed-tar.ts';
import { temporaryNames } from '../../shared/temporary-name.ts';
import { isUrl, writableIdentity } from './mirror-git.ts';
import { lastFileName } from './mirror-folder.ts';
import type { BranchTip } from './branch-tip.ts';

/** Yields `.git` first, so that git writes the end of the tar, after the files. `tip` and `exported` are null for an empty repository. */
export async function* archiveParts(
  git: GitRunner,
  tip: BranchTip | null,
  request: WorkTreeRequest,
  exported: string | null,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  yield* dotGit(dotGitFiles(tip, request), exported, signal);
  if (exported === null) yield tarEnd;
  else yield* gitArchive(git, exported, signal);
}

// Users and programs write into `hooks` and `info` without creating them, because every `git init` and `git clone` does.
const folders = ['', 'hooks/', 'info/', 'objects/', 'objects/info/', 'objects/pack/', 'refs/', 'refs/heads/', 'refs/tags/'];
const remoteFolders = ['refs/remotes/', 'refs/remotes/origin/'];

async function* dotGit(files: ReadonlyMap<string, string>, exported: string | null, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  const mtime = new Date();
  for (const name of [...folders, ...(files.has('refs/remotes/origin/HEAD') ? remoteFolders : [])]) {
    yield* tarEntry({ name: `.git/${name}`, type: 'directory', mode: 0o755, mtime });
  }
  for (const [name, text] of files) {
    const content = Buffer.from(text);
    yield* tarEntry({ name: `.git/${name}`, mode: 0o644, size: content.length, mtime }, [content]);
  }
  if (exported === null) return;
  for (const name of await exportedNames(exported)) {
    const path = join(exported, name);
    const { size } = await stat(path);
    const header = { name: `.git/${name}`, mode: name.startsWith('objects/') ? 0o444 : 0o644, size, mtime };
    yield* tarEntry(header, createReadStream(path, { highWaterMark: 256 * 1024, signal }));
  }
}

async function exportedNames(exported: string): Promise<string[]> {
  const packs = (await readdir(join(exported, 'objects/pack'))).map((name) => `objects/pack/${name}`);
  const hasShallow = (await readdir(exported)).includes('shallow');
  return [...packs, ...(hasShallow ? ['shallow'] : []), 'index'];
}

/** Archives the files from git's objects. Git writes the tar, because file names are bytes and tar-stream accepts only UTF-8. */
function gitArchive(git: GitRunner, exported: string, signal: AbortSignal): AsyncGenerator<Buffer> {
  const lastFile = ['--prefix=.git/', `--add-file=${join(exported, lastFileName)}`, '--prefix='];
  const args = ['-c', 'tar.umask=0022', 'archive', '--format=tar', ...lastFile, 'HEAD^{tree}'];
  return untilTarEnd(git.stream({ args, folder: exported }, signal, (exit) => {
    if (exit.code !== 0) throw new Error(`git ended with ${exit.signal ?? `exit code ${exit.code}`}: ${exit.stderr}`);
  }));
}

const blockBytes = 512;
// The zeros that end a tar, the padding of git's last record, and the last block of the last file.
const longestEnd = 2 * blockBytes + 20 * blockBytes + blockBytes;

/** Drops the padding after the tar's end, because nobody reads it. The last file is text, so its content does not end in zeros. */
async function* untilTarEnd(tar: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let held = Buffer.alloc(0);
  for await (const chunk of tar) {
    const all = Buffer.concat([held, chunk]);
    const passed = Math.max(0, all.length - longestEnd);
    held = all.subarray(passed);
    if (passed > 0) yield all.subarray(0, passed);
  }
  const content = held.findLastIndex((byte) => byte !== 0) + 1;
  yield held.subarray(0, (Math.ceil(content / blockBytes) + 2) * blockBytes);
}

// The first branch of an empty repository.
const firstBranch = 'main';
const packedRefsHeader = '# pack-refs with: peeled fully-peeled sorted \n';

/** Returns the small files of `.git` by path. The remote is the host's public URL, never a path on this machine. */
function dotGitFiles(
  tip: BranchTip | null, { remote: { url }, author, foldersOfOthers = null }: WorkTreeRequest,
): ReadonlyMap<string, string> {
  const origin = isUrl(url) ? url : null;
  const ignored = [temporaryNames, ...(foldersOfOthers === null ? [] : [`/${foldersOfOthers}/`])];
  const files = new Map([['config', configFile(tip, origin, author)], ['info/exclude', ignored.map((line) => `${line}\n`).join('')]]);
  if (tip === null) return files.set('HEAD', `ref: refs/heads/${firstBranch}\n`);
  const { branch, oid, isDefault } = tip;
  if (branch === null) return files.set('HEAD', `${oid}\n`);
  const refs = [`refs/heads/${branch}`, ...(origin === null ? [] : [`refs/remotes/origin/${branch}`])];
  files.set('HEAD', `ref: refs/heads/${branch}\n`);
  files.set('packed-refs', `${packedRefsHeader}${refs.map((ref) => `${oid} ${ref}\n`).join('')}`);
  if (origin !== null && isDefault) files.set('refs/remotes/origin/HEAD', `ref: refs/remotes/origin/${branch}\n`);
  return files;
}

function configFile(tip: BranchTip | null, origin: string | null, author: GitIdentity | undefined): string {
  const sha256 = tip !== null && isSha256(tip.oid);
  const core = `[core]\n\trepositoryformatversion = ${sha256 ? 1 : 0}\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n`;
  const sections = [sha256 ? `${core}[extensions]\n\tobjectformat = sha256\n` : core];
  if (origin !== null) sections.push(`[remote "origin"]\n\turl = ${configText(origin)}\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n`);
  const branch = tip?.branch ?? null;
  if (origin !== null && branch !== null) {
    sections.push(`[branch ${configText(branch)}]\n\tremote = origin\n\tmerge = ${configText(`refs/heads/${branch}`)}\n`);
  }
  if (author !== undefined) {
    const { name, email } = writableIdentity(author);
    sections.push(`[user]\n\tname = ${configText(name)}\n\temail = ${configText(email)}\n`);
  }
  return sections.join('');
}

function configText(value: string): string {
  return `"${value.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`;
}
