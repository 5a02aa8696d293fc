import { Failure } from '../../domain/failure.ts';
import { isMicroagentPath, microagentDirectory, microagentsOf, type Microagent } from '../../domain/microagent.ts';
import type { DirectoryListing } from '../../ports/git-provider.ts';
import type { LocatedRepository, Repositories, RepositoryPatterns } from '../repositories/repositories.ts';
import { readMicroagent, type ReadingDeps, type ReadMicroagent } from './read-microagent.ts';

export interface MicroagentListing {
  /** Sorted by path. */
  readonly microagents: readonly Microagent[];
  /** When the git host last confirmed it, in ms since the epoch; null: just now. Older only if the deployment allows it. */
  readonly confirmedAt: number | null;
}

export interface MicroagentContent extends Microagent, ReadMicroagent {
  /** As that of the listing. */
  readonly confirmedAt: MicroagentListing['confirmedAt'];
}

export interface MicroagentDeps extends ReadingDeps {
  readonly repositories: Repositories;
  readonly product: string;
}

/** Lists and reads the microagents of repositories. */
export class Microagents {
  readonly #deps: MicroagentDeps;

  constructor(deps: MicroagentDeps) {
    this.#deps = deps;
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
    return await this.listingOf(await this.#deps.repositories.locate(repositoryName, patterns, signal), signal);
  }

  /** The same of a repository that is located already. */
  async listingOf(located: LocatedRepository, signal?: AbortSignal): Promise<MicroagentListing> {
    const { directory, files, confirmedAt } = await this.#listFiles(located, signal);
    return { microagents: microagentsOf(directory, files), confirmedAt: confirmedAt ?? null };
  }

  /**
   * Returns the microagent whose file has this path, relative to the repository's root, with its content. Failures: those of the listing,
   * and `file_not_found` if it has no such path; `provider_failed` with the reason `too_large` for a file of more than 1 MiB.
   */
  async read(repositoryName: string, path: string, patterns: RepositoryPatterns, signal?: AbortSignal): Promise<MicroagentContent> {
    const located = await this.#deps.repositories.locate(repositoryName, patterns, signal);
    const { directory, files, confirmedAt } = await this.#listFiles(located, signal);
    const file = files.find((each) => each.path === path);
    const [microagent] = file === undefined ? [] : microagentsOf(directory, [file]);
    if (file === undefined || microagent === undefined) throw new Failure('file_not_found', { path });
    const read = await readMicroagent(this.#deps, located, file, signal);
    return { ...microagent, ...read, confirmedAt: confirmedAt ?? null };
  }

  async #listFiles({ provider, path }: LocatedRepository, signal?: AbortSignal): Promise<DirectoryListing> {
    const query = {
      directory: (name: string) => microagentDirectory(provider.family, name, this.#deps.product),
      accepts: isMicroagentPath,
    };
    return await provider.listFiles(path, query, signal);
  }
}
