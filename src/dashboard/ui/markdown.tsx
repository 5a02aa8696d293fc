import type { ComponentChildren, VNode } from 'preact';
import { ExternalLink } from './controls.tsx';

/** Renders common Markdown. The text only becomes elements created here; HTML in it stays text. */
export function Markdown({ text }: { readonly text: string }) {
  return <div class="markdown">{blocksOf(text).map((block, index) => <Block key={index} text={block} />)}</div>;
}

/** Splits at empty lines, but not within code fences. An open fence extends to the end, because the text may still be arriving. */
function blocksOf(text: string): string[] {
  const blocks: string[] = [];
  let lines: string[] = [];
  let isFenced = false;
  const end = () => {
    if (lines.length > 0) blocks.push(lines.join('\n'));
    lines = [];
  };
  for (const line of text.split('\n')) {
    const isFence = /^\s*```/.test(line);
    if (!isFenced && (isFence || line.trim() === '' || /^#{1,6} /.test(line))) end();
    if (isFence || isFenced || line.trim() !== '') lines.push(line);
    if (isFence && isFenced) end();
    if (isFence) isFenced = !isFenced;
    else if (!isFenced && /^#{1,6} /.test(line)) end();
  }
  end();
  return blocks;
}

function Block({ text }: { readonly text: string }): VNode {
  if (/^\s*```/.test(text)) {
    const [, ...lines] = text.split('\n');
    if (/^\s*```\s*$/.test(lines.at(-1) ?? '')) lines.pop();
    return <pre tabIndex={0}>{lines.join('\n').trimEnd()}</pre>;
  }
  const heading = /^#{1,6} (.*)/.exec(text);
  if (heading !== null) return <p class="heading">{inline(heading[1] ?? '')}</p>;
  if (/^([-*]|\d+[.)]) /.test(text)) return <List text={text} />;
  if (text.startsWith('> ')) return <blockquote>{inline(text.replaceAll(/^> ?/gm, ''))}</blockquote>;
  return <p>{inline(text)}</p>;
}

function List({ text }: { readonly text: string }) {
  const items = text.split(/\n(?=\s*(?:[-*]|\d+[.)]) )/).map((item) => item.replace(/^\s*(?:[-*]|\d+[.)]) /, ''));
  const rows = items.map((item, index) => <li key={index}>{inline(item)}</li>);
  return /^\d/.test(text) ? <ol>{rows}</ol> : <ul>{rows}</ul>;
}

/** Takes linear time: no part runs over a place where the same form can begin again. */
const inlineForms = /`([^`]+)`|\*\*([^*]+)\*\*|\[([^\][]+)\]\(((?:[^()\s]|\([^()\s]*\))+)\)|(https?:\/\/[^\s<>()]+[^\s<>().,:;!?])/g;

function inline(text: string): ComponentChildren[] {
  const parts: ComponentChildren[] = [];
  let end = 0;
  for (const match of text.matchAll(inlineForms)) {
    const [all, code, bold, label, target, address] = match;
    parts.push(text.slice(end, match.index));
    if (code !== undefined) parts.push(<code>{code}</code>);
    else if (bold !== undefined) parts.push(<strong>{bold}</strong>);
    else parts.push(<ExternalLink url={target ?? address ?? ''}>{label ?? address}</ExternalLink>);
    end = match.index + all.length;
  }
  return [...parts, text.slice(end)];
}
