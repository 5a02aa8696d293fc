import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { buffer, text } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { extract, pack } from 'tar-stream';
import type { FileChange } from '../../../src/domain/change.ts';
import { Failure } from '../../../src/domain/failure.ts';
import { raceSignal } from '../../../src/ports/abort-signals.ts';
import type { CheckoutRequest, RepositoryCheckouts } from '../../../src/ports/repository-checkouts.ts';
import { type SnapshotRequest, SnapshotRefusal, type WorkTreeSnapshot } from '../../../src/ports/work-tree-snapshot.ts';

/** The entry at a path. A string is the content of a regular file. */
export type MemoryFile = string | { readonly executable: string } | { readonly link: string };

export interface MemoryWorkTrees {
  /** Null if the repository is empty. */
  readonly defaultBranch: string | null;
  /** The files of each branch, by their paths. */
  readonly branches: Readonly<Record<string, Readonly<Record<string, MemoryFile>>>>;
  /** What the host refuses: the credential itself, or access to this repository with it. */
  readonly refuses?: 'credential' | 'repository';
}

export interface MemoryCheckouts extends RepositoryCheckouts {
  /** All requests so far. */
  readonly requests: readonly CheckoutRequest[];
  /** Adds the repository, or replaces the one with the same path. */
  put(repository: string, trees: MemoryWorkTrees): void;
}

/**
 * Creates work trees of plain data, for tests. Their `.git` only says which branch is checked out, so git does not accept it.
 * A commit is a digest of the files.
 */
export function createMemoryCheckouts(): MemoryCheckouts {
  const repositories = new Map<string, MemoryWorkTrees>();
  const requests: CheckoutRequest[] = [];
  const pushed = new Map<string, string>();
  /** The files of each commit that was checked out. */
  const commits = new Map<string | null, Readonly<Record<string, MemoryFile>>>([[null, {}]]);
  const closing = new AbortController();

  async function find({ provider, repository, branch: asked }: CheckoutRequest, ending: AbortSignal) {
    // Lets a signal that fires right after the call take effect, as with a slow host.
    await Promise.resolve();
    ending.throwIfAborted();
    const trees = repositories.get(repository);
    if (trees === undefined) throw new Failure('repository_not_found', { repository });
    if (trees.refuses === 'credential') throw new Failure('provider_unauthorized', { provider });
    if (trees.refuses === 'repository') throw new Failure('repository_forbidden', { provider, repository });
    const branch = asked ?? trees.defaultBranch;
    const files = branch === null ? {} : new Map(Object.entries(trees.branches)).get(branch);
    if (files === undefined) throw missing(repository, trees, branch ?? '');
    return { branch, files };
  }

  async function takeSnapshot({ base, foldersOfOthers = null, run }: SnapshotRequest, signal: AbortSignal): Promise<WorkTreeSnapshot> {
    const before = commits.get(base);
    const execution = await run(['tar', '-c', ...(foldersOfOthers === null ? [] : [`--exclude=./${foldersOfOthers}/*`]), '.'], signal);
    try {
      const [after, exitCode] = await raceSignal(Promise.all([filesIn(execution.stdout), execution.exited]), signal);
      if (before === undefined || exitCode !== 0) throw new SnapshotRefusal({ code: 'start_commit_missing' });
      return snapshotOf(base, before, after, pushed);
    } finally {
      await execution.kill();
    }
  }

  return {
    name: 'memory',
    requests,
    put: (repository, trees) => void repositories.set(repository, trees),
    async checkBranch(request, signal) {
      await find(request, AbortSignal.any([signal, closing.signal]));
    },
    async checkOut(request, progress, signal) {
      requests.push(request);
      const ending = AbortSignal.any([signal, closing.signal]);
      const { branch, files } = await find(request, ending);
      progress({ code: 'fetching_repository', phase: null, percent: null });
      const commit = branch === null ? null : createHash('sha1').update(JSON.stringify(files)).digest('hex');
      commits.set(commit, files);
      return { branch, commit, archive: archiveOf(branch ?? 'main', files, ending) };
    },
    async findBranch(request, signal) {
      const { branches, defaultBranch } = repositories.get(request.repository) ?? { branches: {}, defaultBranch: null };
      signal.throwIfAborted();
      const isDefault = request.branch === defaultBranch;
      return { commit: pushed.get(pushKey(request)) ?? (request.branch in branches ? 'host' : null), isDefault };
    },
    takeSnapshot,
    async listChanges(request, signal) {
      await using snapshot = await takeSnapshot(request, signal);
      return { head: snapshot.head, complete: snapshot.complete, commits: await snapshot.commits(signal), files: await snapshot.files(signal) };
    },
    check: async () => ({ ok: true, detail: `${repositories.size} repositories in memory` }),
    async close() {
      closing.abort(new Failure('provider_failed', { provider: 'memory', reason: { code: 'closed' } }));
    },
  };
}

function missing(repository: string, { branches }: MemoryWorkTrees, branch: string): Failure {
  const isEmpty = Object.keys(branches).length === 0;
  return isEmpty ? new Failure('repository_empty', { repository, branch }) : new Failure('branch_not_found', { repository, branch });
}

function archiveOf(branch: string, files: Readonly<Record<string, MemoryFile>>, signal: AbortSignal): ReadableStream<Uint8Array> {
  const tar = pack();
  tar.entry({ name: '.git/HEAD' }, `ref: refs/heads/${branch}\n`);
  for (const [name, file] of Object.entries(files)) {
    if (typeof file === 'string') tar.entry({ name, mode: 0o644 }, file);
    else if ('link' in file) tar.entry({ name, type: 'symlink', linkname: file.link });
    else tar.entry({ name, mode: 0o755 }, file.executable);
  }
  tar.finalize();
  return ReadableStream.from(whileWanted(tar, signal));
}

async function* whileWanted(chunks: AsyncIterable<unknown>, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  signal.throwIfAborted();
  for await (const chunk of chunks) {
    if (chunk instanceof Uint8Array) yield chunk;
    signal.throwIfAborted();
  }
}

async function filesIn(stream: ReadableStream<Uint8Array>): Promise<Record<string, MemoryFile>> {
  const files: Record<string, MemoryFile> = {};
  const tar = await buffer(stream);
  // The reading of an empty tar would never end.
  if (tar.length === 0) return files;
  const entries = extract();
  const reading = pipeline(Readable.from([tar]), entries);
  for await (const entry of entries) {
    const { name, type, mode, linkname } = entry.header;
    const path = name.replace(/^\.\//u, '');
    const content = await text(entry);
    if (type === 'directory' || path.startsWith('.git/')) continue;
    if (type === 'symlink') files[path] = { link: linkname ?? '' };
    else files[path] = (mode & 0o100) === 0 ? content : { executable: content };
  }
  await reading;
  return files;
}

/** Compares files. There are never commits or renames. */
function snapshotOf(
  head: string | null, before: Readonly<Record<string, MemoryFile>>, after: Readonly<Record<string, MemoryFile>>, pushed: Map<string, string>,
): WorkTreeSnapshot {
  const paths = [...new Set([...Object.keys(before), ...Object.keys(after)])].toSorted();
  const changed = paths.filter((path) => JSON.stringify(before[path]) !== JSON.stringify(after[path]));
  const files = changed.map((path): FileChange => {
    const [old, now] = [before[path], after[path]];
    const status = old === undefined ? 'added' : now === undefined ? 'deleted' : contentOf(old) === contentOf(now) ? 'mode_changed' : 'modified';
    const lines = { added: linesOf(now), removed: linesOf(old) };
    return { path, status, oldPath: null, oldMode: modeOf(old), mode: modeOf(now), binary: false, ...lines, committed: false };
  });
  const patch = files.map(({ path }) => `diff --git a/${path} b/${path}\n`);
  const tree = createHash('sha1').update(JSON.stringify(after)).digest('hex');
  return {
    tree,
    head,
    complete: true,
    commits: async () => [],
    files: async () => files,
    patch: (wanted) => new Blob(patch.filter((_, index) => wanted?.includes(files[index]?.path ?? '') ?? true)).stream(),
    async commit() {
      if (files.length > 0) return tree;
      if (head === null) throw new SnapshotRefusal({ code: 'nothing_to_publish' });
      return head;
    },
    async push({ request, commit, expected }) {
      if ((pushed.get(pushKey(request)) ?? null) !== expected) throw new SnapshotRefusal({ code: 'branch_moved' });
      pushed.set(pushKey(request), commit);
    },
    [Symbol.asyncDispose]: async () => {},
  };
}

function pushKey({ repository, branch }: CheckoutRequest): string {
  return JSON.stringify([repository, branch]);
}

function contentOf(file: MemoryFile): string {
  return typeof file === 'string' ? file : Object.values(file).join('');
}

function linesOf(file: MemoryFile | undefined): number {
  return file === undefined ? 0 : contentOf(file).split('\n').length - 1;
}

function modeOf(file: MemoryFile | undefined): string | null {
  if (file === undefined) return null;
  return typeof file === 'string' ? '100644' : 'link' in file ? '120000' : '100755';
}
