import { createHash } from 'node:crypto';
import { pack } from 'tar-stream';
import { Failure } from '../../../src/domain/failure.ts';
import type { CheckoutRequest, RepositoryCheckouts } from '../../../src/ports/repository-checkouts.ts';

/** What stands at a path: text is the content of a regular file. */
export type MemoryFile = string | { readonly executable: string } | { readonly link: string };

export interface MemoryWorkTrees {
  /** Null where the repository is empty. */
  readonly defaultBranch: string | null;
  /** From a branch to its files, by their paths. */
  readonly branches: Readonly<Record<string, Readonly<Record<string, MemoryFile>>>>;
  /** What its host refuses: the credential itself, or that this repository is read with it. */
  readonly refuses?: 'credential' | 'repository';
}

export interface MemoryCheckouts extends RepositoryCheckouts {
  /** What was asked for so far. */
  readonly requests: readonly CheckoutRequest[];
  /** Adds the repository, or puts it in the place of the one with its path. */
  put(repository: string, trees: MemoryWorkTrees): void;
}

/**
 * Makes work trees of plain data, for tests. Their `.git` says which branch is checked out, and is otherwise none that git
 * would take; a commit is a digest of the files.
 */
export function createMemoryCheckouts(): MemoryCheckouts {
  const repositories = new Map<string, MemoryWorkTrees>();
  const requests: CheckoutRequest[] = [];
  const closing = new AbortController();

  async function find({ provider, repository, branch: asked }: CheckoutRequest, ending: AbortSignal) {
    // A caller that leaves right after the call is told so, as it is by a host that takes its time.
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
      return { branch, commit, archive: archiveOf(branch ?? 'main', files, ending) };
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
