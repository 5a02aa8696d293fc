import { Failure } from '../../domain/failure.ts';
import { parseRepositoryName } from '../../domain/repository-name.ts';
import type { GitProvider, RepositoryInfo } from '../../ports/git-provider.ts';

/** A repository's name without its host, and the provider that serves it. */
export interface LocatedRepository {
  readonly provider: GitProvider;
  readonly path: string;
}

/** The repositories that the deployment's git providers serve. */
export class Repositories {
  readonly #providers: readonly GitProvider[];

  /** The first provider serves names without a host in front. */
  constructor(providers: readonly GitProvider[]) {
    this.#providers = providers;
  }

  /**
   * Chooses the provider. Failures: `invalid_request` (not a repository name), `repository_not_found` if there is no provider.
   */
  locate(name: string): LocatedRepository {
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

  /** Finds the repository on its provider. Failures: those of {@link GitProvider}. */
  async find(name: string): Promise<RepositoryInfo & { readonly provider: string }> {
    const { provider, path } = this.locate(name);
    return { ...(await provider.find(path)), provider: provider.name };
  }
}
