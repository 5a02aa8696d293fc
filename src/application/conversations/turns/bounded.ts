import type { ToolCallContent } from '../../../domain/agent.ts';
import type { AgentUpdate } from '../../../ports/agent.ts';

/** What one event holds at most; what an agent says beyond is cut off, visibly. */
const maxText = 65_536;
const maxItems = 200;

type Told = Exclude<AgentUpdate, { kind: 'message_chunk' }>;

/** The update, small enough for the log. */
export function bounded(update: Told): Told {
  switch (update.kind) {
    case 'usage':
      return update;
    case 'plan':
      return { ...update, entries: update.entries.slice(0, maxItems).map((entry) => ({ ...entry, content: cut(entry.content) })) };
    case 'tool_call': {
      const { call } = update;
      const paths = call.paths.slice(0, maxItems).map(cut);
      return { ...update, call: { ...call, title: cut(call.title), paths, content: call.content.slice(0, maxItems).map(smaller) } };
    }
  }
}

function smaller(content: ToolCallContent): ToolCallContent {
  if (content.type === 'text') return { ...content, text: cut(content.text) };
  return { ...content, oldText: content.oldText === null ? null : cut(content.oldText), newText: cut(content.newText) };
}

function cut(text: string): string {
  return text.length <= maxText ? text : `${text.slice(0, maxText).toWellFormed()} [... ${text.length - maxText} more]`;
}
