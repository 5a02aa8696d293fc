import { isMicroagentPath, microagentDirectory, microagentsOf, type Microagent } from '../domain/microagent.ts';
import type { Repositories } from './repositories.ts';

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
    const { provider, path } = this.#repositories.locate(repositoryName);
    const query = {
      directory: (name: string) => microagentDirectory(provider.family, name, this.#product),
      accepts: isMicroagentPath,
    };
    const { directory, files } = await provider.listFiles(path, query, signal);
    return microagentsOf(directory, files);
  }
}
