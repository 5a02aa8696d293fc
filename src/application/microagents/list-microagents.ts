import { isMicroagentPath, microagentDirectory, microagentsOf, type Microagent } from '../../domain/microagent.ts';
import type { Repositories } from '../repositories/locate-repository.ts';

export interface MicroagentListing {
  /** Sorted by path. */
  readonly microagents: readonly Microagent[];
  /** When the git host last confirmed it, in ms since the epoch; null: just now. Older only where the deployment allows it. */
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
   * The microagents on the default branch of the repository, sorted by path. A repository without the directory has
   * none. Failures: `invalid_request` (no repository name), those of the git provider.
   */
  async list(repositoryName: string, signal?: AbortSignal): Promise<readonly Microagent[]> {
    return (await this.listing(repositoryName, signal)).microagents;
  }

  /** The same, and how old it is. */
  async listing(repositoryName: string, signal?: AbortSignal): Promise<MicroagentListing> {
    const { provider, path } = this.#repositories.locate(repositoryName);
    const query = {
      directory: (name: string) => microagentDirectory(provider.family, name, this.#product),
      accepts: isMicroagentPath,
    };
    const { directory, files, confirmedAt } = await provider.listFiles(path, query, signal);
    return { microagents: microagentsOf(directory, files), confirmedAt: confirmedAt ?? null };
  }
}
