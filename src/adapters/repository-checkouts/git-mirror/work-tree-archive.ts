import { createReadStream } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { untilTarEnd } from './archive-stream.ts';
import { type Git, isUrl } from './git-runner.ts';

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

/** What the `.git` of a work tree says. */
interface DotGit {
  /** Null for a commit without a branch; of an empty repository too. */
  readonly branch: string | null;
  /** Null for an empty repository. */
  readonly oid: string | null;
  /** Is the branch the one that the host has checked out? */
  readonly isDefault: boolean;
  /** Where git fetches from, without a credential. */
  readonly url: string;
}

const sha256Digits = 64;
// What git calls the first branch where nobody says otherwise.
const firstBranch = 'main';

/** The small files of a `.git`, by their paths in it. The remote is the host's public URL; a folder of this machine is none. */
function dotGitFiles({ branch, oid, isDefault, url }: DotGit): ReadonlyMap<string, string> {
  const origin = isUrl(url) ? url : null;
  const files = new Map([
    ['HEAD', oid !== null && branch === null ? `${oid}\n` : `ref: refs/heads/${branch ?? firstBranch}\n`],
    ['config', config(oid, branch, origin)],
  ]);
  if (oid === null || branch === null) return files;
  const refs = [`refs/heads/${branch}`, ...(origin === null ? [] : [`refs/remotes/origin/${branch}`])];
  files.set('packed-refs', `${packedRefsHeader}${refs.map((ref) => `${oid} ${ref}\n`).join('')}`);
  if (origin !== null && isDefault) files.set('refs/remotes/origin/HEAD', `ref: refs/remotes/origin/${branch}\n`);
  return files;
}

const packedRefsHeader = '# pack-refs with: peeled fully-peeled sorted \n';

function config(oid: string | null, branch: string | null, origin: string | null): string {
  const sha256 = oid?.length === sha256Digits;
  return [
    ...section('core', {
      repositoryformatversion: sha256 ? '1' : '0',
      filemode: 'true',
      bare: 'false',
      logallrefupdates: 'true',
    }),
    ...(sha256 ? section('extensions', { objectformat: 'sha256' }) : []),
    ...(origin === null ? [] : section('remote "origin"', { url: quoted(origin), fetch: '+refs/heads/*:refs/remotes/origin/*' })),
    ...(origin === null || branch === null
      ? []
      : section(`branch ${quoted(branch)}`, { remote: 'origin', merge: quoted(`refs/heads/${branch}`) })),
    '',
  ].join('\n');
}

function section(name: string, values: Readonly<Record<string, string>>): string[] {
  return [`[${name}]`, ...Object.entries(values).map(([key, value]) => `\t${key} = ${value}`)];
}

function quoted(value: string): string {
  return `"${value.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`;
}

/** One header of a tar, for names that are ours: short and ASCII. */
interface TarEntry {
  readonly name: string;
  readonly kind: 'file' | 'folder';
  readonly mode: number;
  /** In bytes. */
  readonly size: number;
  /** In seconds since the epoch. */
  readonly mtime: number;
}

const blockBytes = 512;
const largestOctal = 8 ** 11;

/** The header of the entry, in the POSIX form. */
export function tarHeader({ name, kind, mode, size, mtime }: TarEntry): Buffer {
  const header = Buffer.alloc(blockBytes);
  if (name.length > 100) throw new RangeError(`the name is too long for a tar: ${name}`);
  header.write(name, 0, 'ascii');
  header.write(octal(mode, 8), 100, 'ascii');
  header.write(octal(0, 8), 108, 'ascii');
  header.write(octal(0, 8), 116, 'ascii');
  writeSize(header, size);
  header.write(octal(mtime, 12), 136, 'ascii');
  header.write(' '.repeat(8), 148, 'ascii');
  header.write(kind === 'folder' ? '5' : '0', 156, 'ascii');
  header.write('ustar\u000000', 257, 'latin1');
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${octal(sum, 7)}\0 `, 148, 'latin1');
  return header;
}

/** Eight gibibytes and more are written in base 256, as GNU and all that read tars since do. */
function writeSize(header: Buffer, size: number): void {
  if (size < largestOctal) {
    header.write(octal(size, 12), 124, 'ascii');
    return;
  }
  header.writeUInt8(0x80, 124);
  header.writeBigUInt64BE(BigInt(size), 128);
}

function octal(value: number, width: number): string {
  return value.toString(8).padStart(width - 1, '0');
}

/** What fills the last block of a file of this size. */
export function tarPadding(size: number): Buffer {
  return Buffer.alloc((blockBytes - (size % blockBytes)) % blockBytes);
}

/** The end of a tar. */
export const tarEnd = Buffer.alloc(2 * blockBytes);
