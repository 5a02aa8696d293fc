import type { ToolCallContent } from '../../../domain/agent.ts';
import type { AgentUpdate } from '../../../ports/agent-protocol.ts';

/** What one text of an event holds at most, and all of them together; what an agent says beyond is cut off, visibly. */
const maxText = 65_536;
const maxTexts = 262_144;
const maxItems = 200;

type Told = Exclude<AgentUpdate, { kind: 'message_chunk' }>;
type Cut = (text: string) => string;

/** The update, small enough for the log. */
export function bounded(update: Told): Told {
  const cut = cutter();
  switch (update.kind) {
    case 'usage':
      return update;
    case 'plan':
      return { ...update, entries: update.entries.slice(0, maxItems).map((entry) => ({ ...entry, content: cut(entry.content) })) };
    case 'tool_call': {
      const { call } = update;
      const title = cut(call.title);
      const paths = call.paths.slice(0, maxItems).map(cut);
      return { ...update, call: { ...call, title, paths, content: call.content.slice(0, maxItems).map((part) => smaller(part, cut)) } };
    }
  }
}

function smaller(content: ToolCallContent, cut: Cut): ToolCallContent {
  if (content.type === 'text') return { ...content, text: cut(content.text) };
  return { ...content, oldText: content.oldText === null ? null : cut(content.oldText), newText: cut(content.newText) };
}

/** Cuts texts so that they have room together. */
function cutter(): Cut {
  let left = maxTexts;
  return (text) => {
    const room = Math.min(maxText, left);
    left -= Math.min(text.length, room);
    return text.length <= room ? text : `${text.slice(0, room).toWellFormed()} [... ${text.length - room} more]`;
  };
}
