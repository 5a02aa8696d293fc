import type { MessageRole, ToolCall, TurnStopReason } from '../../domain/agent.ts';
import type { Event } from '../../domain/event.ts';
import type { OwnerScope } from '../../domain/principal.ts';
import type { Reason } from '../../domain/reason.ts';
import type { ConversationsDeps } from './conversations.ts';

/** What a reader of a conversation wants to know, without what led to it. `at` is in milliseconds since the epoch. */
export type TranscriptEntry = { readonly at: number } & (
  | { readonly kind: 'message'; readonly role: MessageRole; readonly text: string }
  /** A tool call, once, as it ended. */
  | ({ readonly kind: 'tool_call' } & Pick<ToolCall, 'title' | 'toolKind' | 'status' | 'paths'>)
  /** The end of a turn that did not end as it should. */
  | { readonly kind: 'turn_ended'; readonly stopReason: TurnStopReason; readonly reason: Reason | null }
);

const kinds = ['message', 'tool_call', 'turn_ended'] as const;
const pageSize = 100;

/**
 * Yields what was said and done in the conversation, oldest first, as far as the log has it, also of an archived one. The first entry is
 * asked for before this returns. Throws `conversation_not_found` or `store_unavailable`.
 */
export async function getTranscript(deps: ConversationsDeps, scope: OwnerScope, id: string): Promise<AsyncIterable<TranscriptEntry>> {
  const read = (after: number) => deps.events.page(scope, { conversationId: id, kinds }, after, pageSize);
  const first = await read(0);
  async function* events(): AsyncGenerator<Event, void> {
    for (let page = first; ; page = await read(page.next)) {
      yield* page.items;
      if (page.next === null) return;
    }
  }
  return entriesOf(events());
}

async function* entriesOf(events: AsyncIterable<Event>): AsyncGenerator<TranscriptEntry, void> {
  /** Tool calls that have not ended. Each event of one has all of its state. */
  const open = new Map<string, TranscriptEntry>();
  for await (const { at, reason, ...event } of events) {
    if (event.kind === 'message' && event.data.channel === 'answer') {
      yield { at, kind: 'message', role: event.data.role, text: event.data.text };
    } else if (event.kind === 'tool_call') {
      const { toolCallId, title, toolKind, status, paths } = event.data;
      const entry: TranscriptEntry = { at, kind: 'tool_call', title, toolKind, status, paths };
      if (status === 'completed' || status === 'failed') {
        open.delete(toolCallId);
        yield entry;
      } else open.set(toolCallId, entry);
    } else if (event.kind === 'turn_ended') {
      yield* open.values();
      open.clear();
      const { stopReason } = event.data;
      if (stopReason !== 'end_turn') yield { at, kind: 'turn_ended', stopReason, reason };
    }
  }
  yield* open.values();
}
