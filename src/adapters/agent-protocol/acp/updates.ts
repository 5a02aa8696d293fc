import type { AgentUpdate } from '../../../ports/agent-protocol.ts';
import { textOf } from './content.ts';
import type { WireUpdate } from './schema.ts';
import { plain } from './text.ts';
import type { ToolCalls } from './tool-calls.ts';

/** The update as the port knows it; null where nothing is left of it to show. */
export function updateOf(update: WireUpdate, calls: ToolCalls): AgentUpdate | null {
  switch (update.sessionUpdate) {
    case 'agent_message_chunk':
    case 'agent_thought_chunk': {
      const channel = update.sessionUpdate === 'agent_message_chunk' ? 'answer' : 'thought';
      const text = textOf(update.content);
      return text === '' ? null : { kind: 'message_chunk', channel, messageId: update.messageId ?? null, text };
    }
    case 'tool_call':
    case 'tool_call_update':
      return { kind: 'tool_call', call: calls.merge(update) };
    case 'plan':
      return { kind: 'plan', entries: update.entries.map((entry) => ({ ...entry, content: plain(entry.content) })) };
    case 'usage_update':
      return { kind: 'usage', usedTokens: update.used, contextTokens: update.size, cost: update.cost ?? null };
  }
}
