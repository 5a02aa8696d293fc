import { Failure, isFailureOf } from '../../domain/failure.ts';
import {
  isMicroagentPath, maxMicroagentBytes, type Microagent, microagentDirectory, microagentsOf, triggersOf,
} from '../../domain/microagent.ts';
import type { ReasonOf } from '../../domain/reason.ts';
import type { ParseFrontMatter } from '../../ports/front-matter.ts';
import type { DirectoryListing, FileContentId } from '../../ports/git-provider.ts';
import type { LocatedRepository, Repositories, RepositoryPatterns } from '../repositories/repositories.ts';

export type MicroagentContent = Microagent & ReadMicroagent;

export interface MicroagentDeps {
  readonly repositories: Repositories;
  readonly product: string;
  readonly parseFrontMatter: ParseFrontMatter;
  /** A cache of the texts of files. */
  readonly texts: { get(key: string): string | undefined; set(key: string, text: string): unknown };
}

/** The parsed file of a microagent. */
export interface ReadMicroagent {
  readonly content: string;
  readonly triggers: readonly string[];
  /** The values of the front matter, as in JSON. Null if there is none, or it can't be read. */
  readonly frontMatter: Readonly<Record<string, unknown>> | null;
  readonly frontMatterProblem: ReasonOf<'front_matter'> | null;
  readonly gitProvider: string;
}

export class Microagents {
  readonly #deps: MicroagentDeps;

  constructor(deps: MicroagentDeps) {
    this.#deps = deps;
  }

  /**
   * Returns them sorted by path. Throws `repository_not_found` (also if no pattern matches), `invalid_request`, and the failures of the git
   * provider.
   */
  async list(repositoryName: string, patterns: RepositoryPatterns, signal?: AbortSignal): Promise<readonly Microagent[]> {
    const located = await this.#deps.repositories.locate(repositoryName, patterns, signal);
    const { directory, files } = await this.#listFiles(located, signal);
    return microagentsOf(directory, files);
  }

  /** Lists the files of the microagents, sorted by path. Throws the failures of `GitProvider.listFiles`. */
  async filesAt(located: LocatedRepository, signal: AbortSignal): Promise<readonly FileContentId[]> {
    const { directory, files } = await this.#listFiles(located, signal);
    const byPath = new Map(files.map((file) => [file.path, file] as const));
    return microagentsOf(directory, files).flatMap(({ path }) => byPath.get(path) ?? []);
  }

  /** Reads a file that the same caller has just listed. Throws the failures of `GitProvider.readFile`. */
  async readFileAt({ provider, path: repository }: LocatedRepository, file: FileContentId, signal?: AbortSignal): Promise<ReadMicroagent> {
    const { parseFrontMatter, texts } = this.#deps;
    // The content of a blob id never changes. The key contains the repository, so nobody gets a blob that only another repository has.
    const key = JSON.stringify([provider.name, repository, file.blobId]);
    let text = texts.get(key);
    if (text === undefined) {
      text = new TextDecoder().decode(await provider.readFile(repository, file, maxMicroagentBytes, signal));
      texts.set(key, text);
    }
    const { content, data: frontMatter, problem } = await parseFrontMatter(text);
    const triggers = frontMatter === null ? [] : triggersOf(frontMatter);
    const frontMatterProblem = triggers === null ? ({ code: 'front_matter', problem: 'triggers', line: null } as const) : problem;
    return { content, triggers: triggers ?? [], frontMatter, frontMatterProblem, gitProvider: provider.name };
  }

  /** Throws the failures of {@link list}, `file_not_found`, and `invalid_request` for a file of more than 1 MiB. */
  async read(repositoryName: string, filePath: string, patterns: RepositoryPatterns, signal?: AbortSignal): Promise<MicroagentContent> {
    const located = await this.#deps.repositories.locate(repositoryName, patterns, signal);
    const { directory, files } = await this.#listFiles(located, signal);
    const file = files.find(({ path }) => path === filePath);
    const [microagent] = file === undefined ? [] : microagentsOf(directory, [file]);
    if (file === undefined || microagent === undefined) throw new Failure('file_not_found', { path: filePath });
    const content = await this.readFileAt(located, file, signal).catch((error: unknown) => {
      if (!isTooLarge(error)) throw error;
      const reason = { code: 'too_large', limit: `${maxMicroagentBytes} bytes in a file` } as const;
      throw new Failure('invalid_request', { problems: [{ argument: 'filePath', reason }] }, { cause: error });
    });
    return { ...microagent, ...content };
  }

  async #listFiles({ provider, path }: LocatedRepository, signal?: AbortSignal): Promise<DirectoryListing> {
    const query = {
      directory: (name: string) => microagentDirectory(provider.family, name, this.#deps.product),
      accepts: isMicroagentPath,
    };
    const listing = await provider.listFiles(path, query, signal);
    const undated = listing.files.find(({ createdAt }) => Number.isNaN(new Date(createdAt).getTime()));
    if (undated === undefined) return listing;
    throw new TypeError(`The git provider ${provider.name} returned ${undated.createdAt} as the date of a file, which is not a time.`);
  }
}

/** Returns true if {@link Microagents.readFileAt} failed because the file is too large. */
export function isTooLarge(error: unknown): boolean {
  return isFailureOf(error, 'provider_failed') && error.context.reason.code === 'too_large';
}
