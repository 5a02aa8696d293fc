import type { ReasonOf } from '../domain/reason.ts';

/** A Markdown file, taken apart. */
export interface FrontMatter {
  /** The text after the front matter. The whole text if there is none, or it can't be read. */
  readonly content: string;
  /** What the front matter says, as JSON has it. Null if there is none, or it can't be read. */
  readonly data: Readonly<Record<string, unknown>> | null;
  /** Why it can't be read. */
  readonly problem: ReasonOf<'front_matter'> | null;
}

/**
 * Takes a Markdown file apart: front matter is what stands between the first line and another one if both are `---`. The text may come
 * from anybody. Never rejects, and its work and result are bounded, whatever the text is.
 */
export type ParseFrontMatter = (text: string) => Promise<FrontMatter>;
