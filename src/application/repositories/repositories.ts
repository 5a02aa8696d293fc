import { Failure } from '../../domain/failure.ts';
import type { RepositoryLocation } from '../../domain/conversation.ts';
import { matchesRepository } from '../../domain/principal.ts';
import { parseRepositoryName } from '../../domain/repository-name.ts';
import type { GitProvider, RepositoryInfo } from '../../ports/git-provider.ts';

export interface LocatedRepository {
  readonly provider: GitProvider;
  readonly path: string;
}

export interface FoundRepository extends RepositoryInfo {
  readonly provider: GitProvider;
}

/** The repositories that a caller may use; null is all of them. */
export type RepositoryPatterns = readonly string[] | null;

export class Repositories {
  readonly #providers: readonly GitProvider[];

  /** The first provider serves names without a host in front. */
  constructor(providers: readonly GitProvider[]) {
    this.#providers = providers;
  }

  /**
   * Returns where the repository is. Without patterns its provider is not asked. Failures: `invalid_request` (not a repository name),
   * `repository_not_found` if there is no provider; with patterns those of {@link find}.
   */
  async locate(name: string, patterns: RepositoryPatterns, signal?: AbortSignal): Promise<LocatedRepository> {
    return patterns === null ? this.#locate(name) : await this.find(name, patterns, signal);
  }

  /** Returns where a repository is that was found before. Failure: `repository_not_found` if the provider is no longer configured. */
  located({ provider: name, path }: RepositoryLocation): LocatedRepository {
    const provider = this.#providers.find((each) => each.name === name);
    if (provider === undefined) throw new Failure('repository_not_found', { repository: path });
    return { provider, path };
  }

  /** Chooses the provider by the host in front of the name. */
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

  /** What none of the `patterns` matches does not exist for the caller. They are compared with the path that the provider itself has. */
  async find(name: string, patterns: RepositoryPatterns, signal?: AbortSignal): Promise<FoundRepository> {
    const { provider, path } = this.#locate(name);
    const found = await provider.find(path, signal);
    const allHosts = this.#providers.flatMap(({ hosts }) => hosts);
    if (patterns !== null && !matchesRepository(patterns, found.path, provider.hosts, allHosts)) {
      throw new Failure('repository_not_found', { repository: path });
    }
    return { ...found, provider };
  }
}
