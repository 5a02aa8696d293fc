import type { Token } from 'markdown-it';
import { type ComponentChildren, h } from 'preact';
import { useMemo, useRef } from 'preact/hooks';
import { ExternalLink } from './controls.tsx';
import { blocksOf, parser } from './markdown-parser.ts';

/** Renders Markdown. The text only becomes elements created here; HTML in it stays text. */
export function Markdown({ text }: { readonly text: string }) {
  const known = useRef<readonly string[]>([]);
  known.current = blocksOf(text.replaceAll(/\r\n?/g, '\n'), known.current);
  return <div class="markdown">{known.current.map((block, index) => <Block key={index} text={block} />)}</div>;
}

function Block({ text }: { readonly text: string }) {
  return <>{useMemo(() => nodesOf(parser.parse(text, {})), [text])}</>;
}

/** Elements in more elements than this are left out, but their content is not: browsers render only some hundred levels. */
const maxDepth = 100;

function nodesOf(tokens: readonly Token[]): ComponentChildren[] {
  let nodes: ComponentChildren[] = [];
  const outer: (readonly [opening: Token, nodes: ComponentChildren[]])[] = [];
  for (const token of tokens) {
    if (token.nesting > 0) {
      outer.push([token, nodes]);
      if (outer.length < maxDepth) nodes = [];
    } else if (token.nesting === 0) nodes.push(leafOf(token));
    else {
      const [opening, before] = outer.pop() ?? [token, []];
      if (nodes !== before) before.push(elementOf(opening, nodes));
      nodes = before;
    }
  }
  return nodes;
}

function elementOf(opening: Token, children: ComponentChildren[]): ComponentChildren {
  if (opening.hidden) return children;
  switch (opening.type) {
    case 'link_open': return <ExternalLink url={String(opening.attrGet('href'))}>{children}</ExternalLink>;
    case 'heading_open': return <p class="heading">{children}</p>;
    default: return h(opening.tag, Object.fromEntries(opening.attrs ?? []), children);
  }
}

function leafOf(token: Token): ComponentChildren {
  const { type, content } = token;
  switch (type) {
    case 'inline': return nodesOf(token.children ?? []);
    case 'softbreak': case 'hardbreak': return '\n';
    case 'code_inline': return <code>{content}</code>;
    case 'fence': case 'code_block': return <pre tabIndex={0}>{content.trimEnd()}</pre>;
    case 'hr': return <hr />;
    // The content security policy allows no images of other hosts.
    case 'image': return <ExternalLink url={String(token.attrGet('src'))}>{content || 'Image'}</ExternalLink>;
    default: return content;
  }
}
