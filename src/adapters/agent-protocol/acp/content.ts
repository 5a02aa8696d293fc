import type { ToolCallContent } from '../../../domain/agent.ts';
import type { Block, WireToolCallContent } from './schema.ts';
import { plain } from './text.ts';

/** What is not text is named, not shown. */
export function textOf({ type, text, mimeType, name, uri, resource }: Block): string {
  if (type === 'text') return plain(text ?? '');
  const what = name ?? resource?.uri ?? uri ?? mimeType;
  const kind = type === 'resource_link' ? 'resource' : type;
  return plain(what === null || what === undefined ? `[${kind}]` : `[${kind}: ${what}]`);
}

/** A change of a file is shown as it is, to the byte. */
export function contentOf(content: WireToolCallContent): ToolCallContent {
  switch (content.type) {
    case 'content':
      return { type: 'text', text: textOf(content.content) };
    case 'diff':
      return { type: 'diff', path: content.path, oldText: content.oldText ?? null, newText: content.newText };
    case 'other':
      return { type: 'text', text: `[${plain(content.name)}]` };
  }
}
