import type { ComponentChildren, VNode } from 'preact';
import { ExternalLink } from './controls.tsx';

/** Renders common Markdown. The text only becomes elements created here; HTML in it stays text. */
export function Markdown({ text }: { readonly text: string }) {
  return <div class="markdown">{blocksOf(text).map((block, index) => <Block key={index} text={block} />)}</div>;
}

/** Splits at empty lines and before a list, but not in code fences. An open fence extends to the end: the text may still be arriving. */
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
    const beginsList = isItem.test(line) && !isItem.test(lines[0] ?? line);
    if (!isFenced && (isFence || line.trim() === '' || /^#{1,6} /.test(line) || beginsList)) end();
    if (isFence || isFenced || line.trim() !== '') lines.push(line);
    if (isFence && isFenced) end();
    if (isFence) isFenced = !isFenced;
    else if (!isFenced && /^#{1,6} /.test(line)) end();
  }
  end();
  return blocks;
}

const isItem = /^(?:[-*]|\d+[.)]) /;

function Block({ text }: { readonly text: string }): VNode {
  if (/^\s*```/.test(text)) {
    const [, ...lines] = text.split('\n');
    if (/^\s*```\s*$/.test(lines.at(-1) ?? '')) lines.pop();
    return <pre tabIndex={0}>{lines.join('\n').trimEnd()}</pre>;
  }
  const heading = /^#{1,6} (.*)/.exec(text);
  if (heading !== null) return <p class="heading">{inline(heading[1] ?? '')}</p>;
  if (isItem.test(text)) return <List text={text} />;
  if (text.startsWith('> ')) return <blockquote>{inline(text.replaceAll(/^> ?/gm, ''))}</blockquote>;
  return <p>{inline(text)}</p>;
}

/** Items of lists in the list are indented items of the same list, which takes linear time. */
function List({ text }: { readonly text: string }) {
  const items = text.split(/\n(?=[ \t]*(?:[-*]|\d+[.)]) )/);
  return <ol>{items.map((item, index) => {
    const [marker = '', indent = '', number] = /^([ \t]*)(?:[-*]|(\d+)[.)]) /.exec(item) ?? [];
    const style = { marginLeft: `${Math.min(indent.length, 12) / 2}rem` };
    const look = number === undefined ? 'bullet' : '';
    return <li key={index} value={number} class={look} style={style}>{inline(item.slice(marker.length))}</li>;
  })}</ol>;
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
