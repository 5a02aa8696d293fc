import type { ReasonOf } from '../domain/reason.ts';

/** The parts of a Markdown file. */
export interface FrontMatter {
  /** The text after the front matter. The whole text if there is none, or it can't be read. */
  readonly content: string;
  /** The values of the front matter, as in JSON. Null if there is none, or it can't be read. */
  readonly data: Readonly<Record<string, unknown>> | null;
  /** Why the front matter can't be read. */
  readonly problem: ReasonOf<'front_matter'> | null;
}

/**
 * Splits a Markdown file. The front matter is the text between the first line and another one if both are `---`. White space may come
 * before it; then text that can't be read as front matter is content, without a problem. The text is not trusted: never rejects, and its
 * work and result are bounded for any text.
 */
export type ParseFrontMatter = (text: string) => Promise<FrontMatter>;
