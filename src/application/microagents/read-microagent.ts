import { triggersOf } from '../../domain/microagent.ts';
import type { ReasonOf } from '../../domain/reason.ts';
import type { ParseFrontMatter } from '../../ports/front-matter.ts';
import type { FileContentId } from '../../ports/git-provider.ts';
import type { LocatedRepository } from '../repositories/repositories.ts';

/** The file of a microagent, taken apart. */
export interface ReadMicroagent {
  /** The text after the front matter. The whole text if there is none, or it can't be read. What is not UTF-8 is U+FFFD. */
  readonly content: string;
  /** Words that call the microagent, as its front matter has them. */
  readonly triggers: readonly string[];
  /** What the front matter says, as JSON has it. Null if there is none, or it can't be read. */
  readonly frontMatter: Readonly<Record<string, unknown>> | null;
  /** What is wrong with the front matter. */
  readonly frontMatterProblem: ReasonOf<'front_matter'> | null;
  /** The name of the git provider. */
  readonly gitProvider: string;
}

/** Keeps some texts for a while. */
export interface TextCache {
  get(key: string): string | null;
  set(key: string, text: string): void;
}

export interface ReadingDeps {
  readonly parseFrontMatter: ParseFrontMatter;
  readonly texts: TextCache;
}

/** The largest file that is read, in bytes. */
const maxFileBytes = 2 ** 20;

/** Reads the file of a microagent, which the caller's own listing has just named. Failures: those of `GitProvider.readFile`. */
export async function readMicroagent(
  { parseFrontMatter, texts }: ReadingDeps, { provider, path: repository }: LocatedRepository, file: FileContentId, signal?: AbortSignal,
): Promise<ReadMicroagent> {
  // The content of an id never changes. The key names the repository too, so nobody is served what only another one has.
  const key = JSON.stringify([provider.name, repository, file.blobId]);
  let text = texts.get(key);
  if (text === null) {
    text = new TextDecoder().decode(await provider.readFile(repository, file, maxFileBytes, signal));
    texts.set(key, text);
  }
  const { content, data: frontMatter, problem } = await parseFrontMatter(text);
  const triggers = frontMatter === null ? [] : triggersOf(frontMatter);
  const frontMatterProblem = triggers === null ? ({ code: 'front_matter', problem: 'triggers', line: null } as const) : problem;
  return { content, triggers: triggers ?? [], frontMatter, frontMatterProblem, gitProvider: provider.name };
}
