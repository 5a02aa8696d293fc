import { type AnyFailure, Failure, type FailureCode, isFailure } from '../../domain/failure.ts';
import type { RepositoryLocation } from '../../domain/conversation.ts';
import { matchesRepository, parseRepositoryName } from '../../domain/repository-name.ts';
import type { Page, PageKey, PageRequest } from '../../domain/page.ts';
import type { Branch, GitProvider, RepositoryInfo, SearchHit } from '../../ports/git-provider.ts';

/** Where a repository is, if it exists. */
export interface LocatedRepository {
  readonly provider: GitProvider;
  readonly path: string;
}

/** A repository as its provider knows it. */
export interface ResolvedRepository extends RepositoryInfo {
  readonly provider: GitProvider;
}

/** A repository that a search found and the caller may see. */
export interface SearchResult extends SearchHit {
  /** {@link Repositories.locate} finds the repository by this name. */
  readonly name: string;
  readonly gitProvider: string;
}

export interface BranchChoice extends Branch {
  readonly isDefault: boolean;
}

interface SearchFailure {
  readonly gitProvider: string;
  readonly failure: AnyFailure;
}

export interface SearchPage extends Page<SearchResult> {
  /** The providers that failed, so their repositories are missing. */
  readonly failures: readonly SearchFailure[];
}

type SearchableProvider = GitProvider & Required<Pick<GitProvider, 'searchRepositories'>>;

/** Where a search of one provider continues. */
interface SearchPosition {
  readonly provider: SearchableProvider;
  /** The provider's `next`. Null for its first page. */
  readonly cursor: string | null;
}

/** `open`: where the search of the provider continues, if it does. */
interface SearchStep extends Pick<SearchPage, 'items' | 'failures'> {
  readonly open: readonly SearchPosition[];
}

const providerFailures: ReadonlySet<FailureCode> = new Set([
  'provider_unauthorized', 'provider_failed', 'provider_rate_limited', 'provider_timeout',
]);

/** How many pages of each host one search reads at most if it finds nothing that the caller may see. */
const maxHostPages = 5;

/** Patterns of the repositories that a caller may use. Null means all. */
export type RepositoryPatterns = readonly string[] | null;

export class Repositories {
  readonly #providers: readonly GitProvider[];

  /** The first provider serves names without a host at the start. */
  constructor(providers: readonly GitProvider[]) {
    this.#providers = providers;
  }

  /**
   * Returns the repository's provider and path. Calls the provider only if there are patterns. Throws `invalid_request` (not a repository
   * name), `repository_not_found` if there is no provider, and with patterns the failures of {@link find}.
   */
  async locate(name: string, patterns: RepositoryPatterns, signal?: AbortSignal): Promise<LocatedRepository> {
    return patterns === null ? this.#locate(name) : await this.find(name, patterns, signal);
  }

  /** Returns the provider of a repository that was found before. Throws `repository_not_found` if it is no longer configured. */
  atLocation({ provider: name, path }: RepositoryLocation): LocatedRepository {
    const provider = this.#providers.find((each) => each.name === name);
    if (provider === undefined) throw new Failure('repository_not_found', { repository: path });
    return { provider, path };
  }

  /** Chooses the provider by the host at the start of the name. */
  #locate(name: string): LocatedRepository {
    const parsed = parseRepositoryName(name);
    if (!parsed.ok) {
      const reason = { code: 'repository_name', problem: parsed.problem } as const;
      throw new Failure('invalid_request', { problems: [{ argument: 'repositoryName', reason }] });
    }
    const [first, ...rest] = parsed.segments;
    const host = first.toLowerCase();
    const named = rest.length === 0 ? undefined : this.#providers.find(({ hosts }) => hosts.includes(host));
    const provider = named ?? this.#providers[0];
    if (provider === undefined) throw new Failure('repository_not_found', { repository: name });
    return { provider, path: named === undefined ? name : rest.join('/') };
  }

  /** Throws the failures of `GitProvider.find`, and `repository_not_found` if no pattern matches the path that the provider returns. */
  async find(name: string, patterns: RepositoryPatterns, signal?: AbortSignal): Promise<ResolvedRepository> {
    return await this.#find(this.#locate(name), patterns, signal);
  }

  /** Like {@link find}, for a repository that was found before. It may have another path now. */
  async findAgain(location: RepositoryLocation, patterns: RepositoryPatterns, signal?: AbortSignal): Promise<ResolvedRepository> {
    return await this.#find(this.atLocation(location), patterns, signal);
  }

  async #find({ provider, path }: LocatedRepository, patterns: RepositoryPatterns, signal?: AbortSignal): Promise<ResolvedRepository> {
    const found = await provider.find(path, signal);
    if (!this.#isAllowed(provider, found.path, patterns)) throw new Failure('repository_not_found', { repository: path });
    return { ...found, provider };
  }

  /**
   * Finds repositories by name. A page asks all providers that can search at once, each for its share of the page. A short or empty page is
   * not always the last one. A page names the providers that failed while it was read. If nothing is on it and nothing can follow, the
   * failure is thrown instead. Throws `listing_unsupported`, `invalid_request` for the page of a provider that is gone, and the failures of
   * `GitProvider.searchRepositories`.
   */
  async search(
    text: string, patterns: RepositoryPatterns, { after, limit }: PageRequest, signal?: AbortSignal,
  ): Promise<SearchPage> {
    const providers = this.#providers.filter(canSearch);
    if (providers.length === 0) throw unsupported(this.#providers, 'repositories');
    let open: readonly SearchPosition[] =
      after === null ? providers.map((provider) => ({ provider, cursor: null })) : parseKey(providers, after);
    let items: readonly SearchResult[] = [];
    const failures: SearchFailure[] = [];
    for (let pages = 0; open.length > 0 && items.length === 0 && pages < maxHostPages; pages += 1) {
      const asked = open.slice(0, limit);
      const share = Math.floor(limit / asked.length);
      const found = await Promise.all(asked.map((position) => this.#searchOne(position, text, patterns, share, signal)));
      items = found.flatMap((page) => page.items);
      failures.push(...found.flatMap((page) => page.failures));
      open = [...found.flatMap((page) => page.open), ...open.slice(limit)];
    }
    const [failed] = failures;
    if (failed !== undefined && items.length === 0 && open.length === 0) throw failed.failure;
    return { items, next: open.length === 0 ? null : keyOf(open), failures };
  }

  /** Returns a page of one provider. Throws only what is no failure of the provider, such as the signal's reason. */
  async #searchOne(
    { provider, cursor }: SearchPosition, text: string, patterns: RepositoryPatterns, limit: number, signal?: AbortSignal,
  ): Promise<SearchStep> {
    try {
      const { items, next } = await provider.searchRepositories(text, { after: cursor, limit }, signal);
      const open = next === null ? [] : [{ provider, cursor: next }];
      return { items: this.#toResults(provider, items, patterns), open, failures: [] };
    } catch (failure) {
      if (!isFailure(failure) || !providerFailures.has(failure.code)) throw failure;
      return { items: [], open: [], failures: [{ gitProvider: provider.name, failure }] };
    }
  }

  /** Lists the branches of a repository. Throws `listing_unsupported`, and the failures of {@link find} and `GitProvider.listBranches`. */
  async branches(
    name: string, patterns: RepositoryPatterns, { after, limit }: PageRequest, signal?: AbortSignal,
  ): Promise<Page<BranchChoice>> {
    const { provider, path, defaultBranch } = await this.find(name, patterns, signal);
    const found = await provider.listBranches?.(path, { after: after?.id ?? null, limit }, signal);
    if (found === undefined) throw unsupported([provider], 'branches');
    const items = found.items.map((branch) => ({ ...branch, isDefault: branch.name === defaultBranch }));
    return { items, next: found.next === null ? null : { value: 0, id: found.next } };
  }

  /** Returns the repositories that the caller may see and that have a name. */
  #toResults(provider: GitProvider, found: readonly SearchHit[], patterns: RepositoryPatterns): readonly SearchResult[] {
    return found.flatMap((repository) => {
      const name = this.#nameOf(provider, repository.path);
      const isVisible = name !== null && this.#isAllowed(provider, repository.path, patterns);
      return isVisible ? [{ ...repository, name, gitProvider: provider.name }] : [];
    });
  }

  #isAllowed({ hosts }: GitProvider, path: string, patterns: RepositoryPatterns): boolean {
    return patterns === null || matchesRepository(patterns, path, hosts, this.#providers.flatMap((each) => each.hosts));
  }

  /** Returns a name that identifies the repository: its path, with a host before it if necessary. Null if there is none. */
  #nameOf(provider: GitProvider, path: string): string | null {
    const names = [path, ...provider.hosts.map((host) => `${host}/${path}`)];
    return names.find((name) => {
      if (!parseRepositoryName(name).ok) return false;
      const located = this.#locate(name);
      return located.provider === provider && located.path === path;
    }) ?? null;
  }
}

function unsupported(providers: readonly GitProvider[], listing: 'repositories' | 'branches'): Error {
  return new Failure('listing_unsupported', { provider: providers.map(({ name }) => name).join(', '), listing });
}

function canSearch(provider: GitProvider): provider is SearchableProvider {
  return provider.searchRepositories !== undefined;
}

/** Names of providers contain no space and no comma. */
function keyOf(open: readonly SearchPosition[]): PageKey {
  return { value: 0, id: open.map(({ provider: { name }, cursor }) => `${name} ${encodeURIComponent(cursor ?? '')}`).join() };
}

/** Throws `invalid_request` if a provider of the page can't be searched any more. */
function parseKey(providers: readonly SearchableProvider[], { id }: PageKey): readonly SearchPosition[] {
  return id.split(',').map((position) => {
    const [name, cursor] = position.split(' ');
    const provider = providers.find((each) => each.name === name);
    if (provider !== undefined && cursor !== undefined) return { provider, cursor: decodeURIComponent(cursor) || null };
    throw new Failure('invalid_request', { problems: [{ argument: 'after', reason: { code: 'unknown_page' } }] });
  });
}
