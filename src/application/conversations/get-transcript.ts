import type { MessageRole, ToolCall, TurnStopReason } from '../../domain/agent.ts';
import type { Event } from '../../domain/event.ts';
import type { OwnerScope } from '../../domain/principal.ts';
import type { Reason } from '../../domain/reason.ts';
import type { ConversationsDeps } from './conversations.ts';

/** An entry of a transcript: results without intermediate events. `at` is in milliseconds since the epoch. */
export type TranscriptEntry = { readonly at: number } & (
  | { readonly kind: 'message'; readonly role: MessageRole; readonly text: string }
  /** The final state of a tool call. */
  | ({ readonly kind: 'tool_call' } & Pick<ToolCall, 'title' | 'toolKind' | 'status' | 'paths'>)
  /** The end of a turn with another stop reason than `end_turn`. */
  | { readonly kind: 'turn_ended'; readonly stopReason: TurnStopReason; readonly reason: Reason | null }
);

const kinds = ['message', 'tool_call', 'turn_ended'] as const;
const pageSize = 100;

/**
 * Yields the transcript of the conversation, oldest entry first, also if it is archived. Contains only what is still in the log. Reads the
 * first page before it returns. Throws `conversation_not_found` or `store_unavailable`.
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
  /** Tool calls that have not ended. Each of their events contains the full state. */
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
