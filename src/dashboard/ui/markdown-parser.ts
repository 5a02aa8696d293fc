import MarkdownIt, { type Token } from 'markdown-it';

/** Without HTML. No links by reference, so that a block needs no other one. Only whole addresses become links: `README.md` is a file. */
export const parser = new MarkdownIt({ linkify: true }).disable('reference');
parser.linkify.set({ fuzzyLink: false, fuzzyEmail: false });

/**
 * Splits the text at the top level. If it continues the text of the known blocks, keeps all of them but the last two: the rest of the last
 * line can make it a part of the block before. So an answer that arrives in many parts is parsed about once.
 */
export function blocksOf(text: string, known: readonly string[]): readonly string[] {
  const kept = text.startsWith(known.join('')) ? known.slice(0, -2) : [];
  const rest = text.slice(kept.join('').length);
  const tokens: Token[] = [];
  parser.block.parse(rest, parser, {}, tokens);
  const starts = tokens.flatMap(({ level, map }) => (level === 0 && map !== null ? [map[0]] : []));
  const lines = rest.split(/(?<=\n)/);
  return [...kept, ...starts.map((start, index) => lines.slice(index === 0 ? 0 : start, starts[index + 1]).join(''))];
}
