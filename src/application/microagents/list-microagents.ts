import { isMicroagentPath, microagentDirectory, microagentsOf, type Microagent } from '../../domain/microagent.ts';
import type { LocatedRepository, Repositories, RepositoryPatterns } from '../repositories/repositories.ts';

export interface MicroagentListing {
  /** Sorted by path. */
  readonly microagents: readonly Microagent[];
  /** When the git host last confirmed it, in ms since the epoch; null: just now. Older only if the deployment allows it. */
  readonly confirmedAt: number | null;
}

/** Lists the microagents of repositories. */
export class Microagents {
  readonly #repositories: Repositories;
  readonly #product: string;

  constructor(repositories: Repositories, product: string) {
    this.#repositories = repositories;
    this.#product = product;
  }

  /**
   * Returns the microagents on the default branch of the repository, sorted by path. There are none without the directory.
   * A repository that none of the patterns (null: no limit) matches does not exist.
   * Failures: `invalid_request` (not a repository name), those of the git provider.
   */
  async list(repositoryName: string, patterns: RepositoryPatterns, signal?: AbortSignal): Promise<readonly Microagent[]> {
    return (await this.listing(repositoryName, patterns, signal)).microagents;
  }

  /** The same, with the time of its last confirmation. */
  async listing(repositoryName: string, patterns: RepositoryPatterns, signal?: AbortSignal): Promise<MicroagentListing> {
    return await this.listingOf(await this.#repositories.locate(repositoryName, patterns, signal), signal);
  }

  /** The same of a repository that is located already. */
  async listingOf({ provider, path }: LocatedRepository, signal?: AbortSignal): Promise<MicroagentListing> {
    const query = {
      directory: (name: string) => microagentDirectory(provider.family, name, this.#product),
      accepts: isMicroagentPath,
    };
    const { directory, files, confirmedAt } = await provider.listFiles(path, query, signal);
    return { microagents: microagentsOf(directory, files), confirmedAt: confirmedAt ?? null };
  }
}
