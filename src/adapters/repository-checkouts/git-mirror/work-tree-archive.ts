import { createReadStream } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { pack, type Pack } from 'tar-stream';
import { type GitRunner, isUrl } from './git-runner.ts';
import { isSha256 } from './mirror.ts';

/** What the `.git` of a work tree says. */
export interface DotGit {
  /** Null for a commit without a branch, and for an empty repository. */
  readonly branch: string | null;
  /** Null for an empty repository. */
  readonly oid: string | null;
  /** Whether the branch is the one that the host has checked out. */
  readonly isDefault: boolean;
  /** Where git fetches from, without a credential. */
  readonly url: string;
}

/** The parts of the archive: first the `.git`, so that its end is the one that git writes after the files. */
export async function* archiveParts(
  git: GitRunner,
  dotGit: DotGit,
  exported: string | null,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const isEmpty = exported === null || dotGit.oid === null;
  const tar = pack();
  const writing = writeDotGit(tar, dotGit, isEmpty ? null : exported, signal).then(
    () => (isEmpty ? tar.finalize() : tar.push(null)),
    (error: Error) => tar.destroy(error),
  );
  try {
    for await (const chunk of tar) if (chunk instanceof Uint8Array) yield chunk;
  } finally {
    tar.destroy();
    await writing;
  }
  if (!isEmpty) yield* gitArchive(git, exported, dotGit.oid, signal);
}

const folders = ['', 'objects/', 'objects/info/', 'objects/pack/', 'refs/', 'refs/heads/', 'refs/tags/'];
const remoteFolders = ['refs/remotes/', 'refs/remotes/origin/'];

async function writeDotGit(tar: Pack, dotGit: DotGit, exported: string | null, signal: AbortSignal): Promise<void> {
  const mtime = new Date();
  const files = dotGitFiles(dotGit);
  for (const name of [...folders, ...(files.has('refs/remotes/origin/HEAD') ? remoteFolders : [])]) {
    await addEntry(tar, { name: `.git/${name}`, type: 'directory', mode: 0o755, mtime }, '');
  }
  for (const [name, text] of files) await addEntry(tar, { name: `.git/${name}`, mode: 0o644, mtime }, text);
  if (exported === null) return;
  for (const name of await exportedNames(exported)) {
    const path = join(exported, name);
    const { size } = await stat(path);
    const entry = tar.entry({ name: `.git/${name}`, mode: name.startsWith('objects/') ? 0o444 : 0o644, size, mtime });
    await pipeline(createReadStream(path, { highWaterMark: 256 * 1024, signal }), entry);
  }
}

/** Rejects if the tar is destroyed meanwhile. */
async function addEntry(tar: Pack, header: Parameters<Pack['entry']>[0], content: string): Promise<void> {
  const written = Promise.withResolvers<void>();
  const callback = (error?: Error | null): void => (error ? written.reject(error) : written.resolve());
  tar.entry(header, content, callback).on('error', written.reject);
  await written.promise;
}

async function exportedNames(exported: string): Promise<string[]> {
  const packs = (await readdir(join(exported, 'objects/pack'))).map((name) => `objects/pack/${name}`);
  const hasShallow = (await readdir(exported)).includes('shallow');
  return [...packs, ...(hasShallow ? ['shallow'] : []), 'index'];
}

/**
 * The files as git checks them out, straight from its objects, which have no dates. Git's own tar is passed on, since names are bytes:
 * tar-stream reads and writes only names that are UTF-8.
 */
async function* gitArchive(git: GitRunner, exported: string, oid: string, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  const args = ['-c', 'tar.umask=0022', 'archive', '--format=tar', `${oid}^{tree}`];
  const { stdout, exited, end } = git.start({ args, folder: exported, environment: { GIT_DIR: exported } }, signal);
  // Handled below; if reading fails, that failure counts.
  exited.catch(() => null);
  try {
    yield* untilTarEnd(stdout as AsyncIterable<Buffer>);
    const exit = await exited;
    if (exit.code !== 0) throw new Error(`git ended with ${exit.signal ?? `exit code ${exit.code}`}: ${exit.stderr}`);
  } finally {
    end(new Error('the archive is not read any more'));
    await exited.catch(() => null);
  }
}

// What git calls the first branch unless it is configured.
const firstBranch = 'main';
const packedRefsHeader = '# pack-refs with: peeled fully-peeled sorted \n';

/** The small files of a `.git`, by their paths in it. The remote is the host's public URL; a folder of this machine is not named. */
function dotGitFiles({ branch, oid, isDefault, url }: DotGit): ReadonlyMap<string, string> {
  const origin = isUrl(url) ? url : null;
  const files = new Map([
    ['HEAD', oid !== null && branch === null ? `${oid}\n` : `ref: refs/heads/${branch ?? firstBranch}\n`],
    ['config', configFile(oid, branch, origin)],
  ]);
  if (oid === null || branch === null) return files;
  const refs = [`refs/heads/${branch}`, ...(origin === null ? [] : [`refs/remotes/origin/${branch}`])];
  files.set('packed-refs', `${packedRefsHeader}${refs.map((ref) => `${oid} ${ref}\n`).join('')}`);
  if (origin !== null && isDefault) files.set('refs/remotes/origin/HEAD', `ref: refs/remotes/origin/${branch}\n`);
  return files;
}

function configFile(oid: string | null, branch: string | null, origin: string | null): string {
  const sha256 = oid !== null && isSha256(oid);
  const core = { repositoryformatversion: sha256 ? '1' : '0', filemode: 'true', bare: 'false', logallrefupdates: 'true' };
  const sections = [section('core', core)];
  if (sha256) sections.push(section('extensions', { objectformat: 'sha256' }));
  if (origin !== null) sections.push(section('remote "origin"', { url: quoted(origin), fetch: '+refs/heads/*:refs/remotes/origin/*' }));
  if (origin !== null && branch !== null) {
    sections.push(section(`branch ${quoted(branch)}`, { remote: 'origin', merge: quoted(`refs/heads/${branch}`) }));
  }
  return sections.join('');
}

function section(name: string, values: Readonly<Record<string, string>>): string {
  return `[${name}]\n${Object.entries(values).map(([key, value]) => `\t${key} = ${value}\n`).join('')}`;
}

function quoted(value: string): string {
  return `"${value.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`;
}

/**
 * Returns the parts as a stream that is made as it is read. If the signal fires, the stream ends with its reason, read or not; cancelling
 * ends it too. `onEnd` is called once, with the failure if the parts failed, else with null.
 */
export function streamOf(
  parts: (signal: AbortSignal) => AsyncGenerator<Uint8Array>,
  signal: AbortSignal,
  onEnd: (failure: unknown) => Promise<void>,
): ReadableStream<Uint8Array> {
  const ending = new AbortController();
  const generator = parts(ending.signal);
  let over = false;
  const end = async (failure: unknown): Promise<void> => {
    if (over) return;
    over = true;
    signal.removeEventListener('abort', onAbort);
    await onEnd(failure);
  };
  const leave = async (reason: unknown): Promise<void> => {
    ending.abort(reason);
    // What it does at this moment fails because of the signal, which is not a failure of its own.
    await generator.return(undefined).catch(() => undefined);
    await end(null);
  };
  let controller: ReadableStreamDefaultController<Uint8Array> | null = null;
  const onAbort = (): void => {
    controller?.error(signal.reason);
    void leave(signal.reason);
  };
  const stream = new ReadableStream<Uint8Array>(
    {
      start(started) {
        controller = started;
      },
      async pull(pulled) {
        try {
          const { done, value } = await nextPart(generator);
          if (over || ending.signal.aborted) return;
          if (done !== true) return pulled.enqueue(value);
          await end(null);
          pulled.close();
        } catch (error) {
          if (ending.signal.aborted) return;
          await end(error);
          throw error;
        }
      },
      cancel: leave,
    },
    { highWaterMark: 0 },
  );
  if (signal.aborted) onAbort();
  else signal.addEventListener('abort', onAbort, { once: true });
  return stream;
}

/** Skips empty parts: a pull that enqueues nothing is not repeated. */
async function nextPart(generator: AsyncGenerator<Uint8Array>): Promise<IteratorResult<Uint8Array>> {
  for (;;) {
    const next = await generator.next();
    if (next.done === true || next.value.length > 0) return next;
  }
}

const blockBytes = 512;
const tarEnd = Buffer.alloc(2 * blockBytes);
const nothing: Buffer = Buffer.alloc(0);

/**
 * Returns the tar up to its end, without the zeros that git fills the last record with. A program that unpacks a tar stops reading at
 * its end, and nobody would read the rest.
 */
export async function* untilTarEnd(tar: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  // Of the current entry: how many bytes of its content are left, and whether it is an extended header.
  let [left, extended] = [0, false];
  // The part of a header that came with earlier chunks, and the extended header of the next entry.
  let [header, extension] = [nothing, ''];
  let over = false;
  for await (const chunk of tar) {
    // What comes after the end is read all the same, so that git can exit.
    for (let at = 0; at < chunk.length && !over; ) {
      if (left > 0) {
        const content = chunk.subarray(at, at + left);
        if (extended) extension += content.toString('latin1');
        left -= content.length;
        at += content.length;
        continue;
      }
      const part = chunk.subarray(at, at + blockBytes - header.length);
      const whole: Buffer = Buffer.concat([header, part]);
      if (whole.length === blockBytes && whole.every((byte) => byte === 0)) {
        over = true;
        yield chunk.subarray(0, at);
        yield tarEnd.subarray(header.length);
        break;
      }
      at += part.length;
      header = whole.length < blockBytes ? whole : nothing;
      if (whole.length < blockBytes) continue;
      left = Math.ceil(contentBytes(whole, extension) / blockBytes) * blockBytes;
      extended = whole[156] === 'x'.charCodeAt(0);
      extension = '';
    }
    if (!over) yield chunk;
  }
}

/** An extended header has the size if it needs more than eleven octal digits. */
function contentBytes(header: Buffer, extension: string): number {
  const extendedSize = /(?:^|\n)\d+ size=(\d+)\n/u.exec(extension)?.[1];
  return extendedSize === undefined ? Number.parseInt(header.toString('latin1', 124, 136), 8) || 0 : Number(extendedSize);
}
