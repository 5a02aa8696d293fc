import { createHash } from 'node:crypto';
import { Failure } from '../../../src/domain/failure.ts';
import type { GitHostFamily } from '../../../src/domain/microagent.ts';
import { parseRepositoryName } from '../../../src/domain/repository-name.ts';
import type { Branch, DatedFile, GitProvider, HostPage, HostPageRequest, RepositoryInfo } from '../../../src/ports/git-provider.ts';

/** A regular file. It is empty if it has no `content`. */
export interface MemoryFile extends Omit<DatedFile, 'blobId'> {
  readonly content?: string | Uint8Array;
}

export interface MemoryRepository extends RepositoryInfo {
  /** The regular files of the default branch. */
  readonly files: readonly MemoryFile[];
  /** Default: only the default branch. */
  readonly branches?: readonly Branch[];
}

export interface MemoryGitProviderOptions {
  readonly name?: string;
  readonly family?: GitHostFamily;
  readonly hosts?: readonly string[];
  readonly repositories?: readonly MemoryRepository[];
}

export interface MemoryGitProvider extends GitProvider {
  /** Adds the repository, or replaces the one with the same path. */
  put(repository: MemoryRepository): void;
  /** Idempotent. */
  remove(path: string): void;
}

/** Serves repositories that are plain data, for tests. */
export function createMemoryGitProvider(options: MemoryGitProviderOptions = {}): MemoryGitProvider {
  const repositories = new Map<string, MemoryRepository>();
  for (const repository of options.repositories ?? []) repositories.set(repository.path, repository);

  async function get(path: string, signal: AbortSignal | undefined): Promise<MemoryRepository> {
    // Lets a signal that fires right after the call take effect, as with a slow host.
    await Promise.resolve();
    signal?.throwIfAborted();
    const repository = parseRepositoryName(path).ok ? repositories.get(path) : undefined;
    if (repository === undefined) throw new Failure('repository_not_found', { repository: path });
    return repository;
  }

  return {
    name: options.name ?? 'memory',
    family: options.family ?? 'other',
    hosts: options.hosts ?? [],
    async listFiles(repository, query, signal) {
      const { path, files } = await get(repository, signal);
      const directory = query.directory(path.slice(path.lastIndexOf('/') + 1));
      const prefix = `${directory}/`;
      const accepted = files.filter((file) => file.path.startsWith(prefix) && query.accepts(file.path.slice(prefix.length)));
      return { directory, files: accepted.map((file) => ({ path: file.path, blobId: blobIdOf(file), createdAt: file.createdAt })) };
    },
    async readFile(repository, { path, blobId }, maxBytes, signal) {
      const { files } = await get(repository, signal);
      const found = files.find((file) => blobIdOf(file) === blobId);
      if (found === undefined) throw new Failure('file_not_found', { path });
      const bytes = bytesOf(found);
      if (bytes.length <= maxBytes) return bytes;
      throw new Failure('provider_failed', { provider: 'memory', reason: { code: 'too_large', limit: `${maxBytes} bytes` } });
    },
    async find(repository, signal) {
      const { path, defaultBranch } = await get(repository, signal);
      return { path, defaultBranch };
    },
    async remote(repository, signal) {
      await Promise.resolve();
      signal?.throwIfAborted();
      return { url: `https://memory.invalid/${repository}.git`, authorization: null };
    },
    async searchRepositories(text, page, signal) {
      await Promise.resolve();
      signal?.throwIfAborted();
      const found = [...repositories.keys()].filter((path) => path.toLowerCase().includes(text.toLowerCase()));
      return pageAfter(found.map((path) => ({ path })), ({ path }) => path, page);
    },
    async listBranches(repository, page, signal) {
      const { defaultBranch, branches } = await get(repository, signal);
      const only = defaultBranch === null ? [] : [{ name: defaultBranch, commit: '0'.repeat(40) }];
      return pageAfter(branches ?? only, ({ name }) => name, page);
    },
    check: async () => ({ ok: true, detail: `${repositories.size} repositories in memory` }),
    close: async () => {},
    put: (repository) => void repositories.set(repository.path, repository),
    remove: (path) => void repositories.delete(path),
  };
}

function pageAfter<T>(all: readonly T[], nameOf: (item: T) => string, { after, limit }: HostPageRequest): HostPage<T> {
  const later = all.filter((item) => after === null || nameOf(item) > after).toSorted((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
  const last = later[limit - 1];
  return { items: later.slice(0, limit), next: later.length > limit && last !== undefined ? nameOf(last) : null };
}

function bytesOf({ content = '' }: MemoryFile): Buffer {
  return Buffer.from(content);
}

/** Returns the id that git gives to the content. */
function blobIdOf(file: MemoryFile): string {
  const bytes = bytesOf(file);
  return createHash('sha1').update(`blob ${bytes.length}\0`).update(bytes).digest('hex');
}
