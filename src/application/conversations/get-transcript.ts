import { isOpenCall, type MessageRole, type ToolCall, type ToolCallContent, type TurnStopReason } from '../../domain/agent.ts';
import type { PermissionOption, PermissionRequest } from '../../domain/permission.ts';
import type { Event, EventActor } from '../../domain/event.ts';
import type { Caller } from '../../domain/principal.ts';
import type { Reason } from '../../domain/reason.ts';
import type { ConversationUseCaseDeps } from './conversations.ts';

/** An entry of a transcript: results without intermediate events. `at` is in milliseconds since the epoch. */
export type TranscriptEntry = MessageEntry | ({ readonly at: number } & (
  /** A request for permission. `answer` is null while it waits for one. */
  | { readonly kind: 'permission'; readonly title: string; readonly answer: PermissionAnswer | null }
  /**
   * The final state of a tool call. `failure` is the text of a call that failed; null if it has none. The content of other calls is left
   * out: it would be most of a transcript, because it has the files that the agent read.
   */
  | ({ readonly kind: 'tool_call'; readonly failure: string | null } & Pick<ToolCall, 'title' | 'toolKind' | 'status' | 'paths'>)
  /** The end of a turn with another stop reason than `end_turn`. */
  | { readonly kind: 'turn_ended'; readonly stopReason: TurnStopReason; readonly reason: Reason | null }
));

/** The answer to a request for permission, and who gave it. `option` is null if the request was withdrawn. */
interface PermissionAnswer {
  readonly option: PermissionOption | null;
  readonly actor: EventActor;
  /** The user who gave it. Null if it was no user, or is not known. */
  readonly userId: string | null;
  readonly reason: Reason | null;
}

/** A message of the user is placed where its turn began, after the answers to earlier ones. One without a turn has the time it was sent. */
interface MessageEntry {
  readonly kind: 'message';
  readonly at: number;
  readonly role: MessageRole;
  /** The user who sent it. Null for a message of the agent, or if it is not known. */
  readonly userId: string | null;
  readonly text: string;
  /** False for a message of the user that the agent has not got: it still waits, or was dropped. */
  readonly isDelivered: boolean;
}

const kinds = ['message', 'tool_call', 'permission_requested', 'permission_answered', 'turn_started', 'turn_ended'] as const;
const pageSize = 100;

/**
 * Yields the transcript of the conversation, oldest entry first, also if it is archived. Contains only what is still in the log. Reads the
 * first page before it returns. Throws `conversation_not_found` or `store_unavailable`.
 */
export async function getTranscript(
  deps: ConversationUseCaseDeps, caller: Caller | null, id: string,
): Promise<AsyncIterable<TranscriptEntry>> {
  const read = (after: number) => deps.events.page(caller, { conversationId: id, kinds }, after, pageSize);
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
  const queued = new Map<string, MessageEntry>();
  /** Requests of the turn that have no answer. */
  const requests = new Map<string, PermissionRequest & { readonly at: number }>();
  /** Tool calls that have not ended. Each of their events contains the full state. */
  const open = new Map<string, TranscriptEntry>();
  for await (const { at, actor, userId, reason, ...event } of events) {
    if (event.kind === 'message' && event.data.channel === 'answer') {
      const { messageId, role, text } = event.data;
      const entry: MessageEntry = { kind: 'message', at, role, userId, text, isDelivered: role === 'agent' };
      if (role === 'user') queued.set(messageId, entry);
      else yield entry;
    } else if (event.kind === 'turn_started') {
      yield* takeThrough(queued, event.data.messageId, at);
    } else if (event.kind === 'permission_requested') {
      requests.set(event.data.permissionId, { ...event.data, at });
    } else if (event.kind === 'permission_answered') {
      const { permissionId, optionId } = event.data;
      const request = requests.get(permissionId);
      if (request === undefined) continue;
      requests.delete(permissionId);
      const option = request.options.find((one) => one.optionId === optionId) ?? null;
      yield { kind: 'permission', at, title: request.title, answer: { option, actor, userId, reason } };
    } else if (event.kind === 'tool_call') {
      const { toolCallId, title, toolKind, status, paths, content } = event.data;
      const failure = status === 'failed' ? textOf(content) : null;
      const entry: TranscriptEntry = { at, kind: 'tool_call', title, toolKind, status, paths, failure };
      if (isOpenCall(event.data)) open.set(toolCallId, entry);
      else {
        open.delete(toolCallId);
        yield entry;
      }
    } else if (event.kind === 'turn_ended' && reason?.code === 'message_withdrawn') {
      const withdrawn = queued.get(event.data.messageId);
      queued.delete(event.data.messageId);
      if (withdrawn !== undefined) yield withdrawn;
    } else if (event.kind === 'turn_ended') {
      yield* open.values();
      open.clear();
      requests.clear();
      const { stopReason } = event.data;
      if (stopReason !== 'end_turn') yield { at, kind: 'turn_ended', stopReason, reason };
    }
  }
  yield* open.values();
  for (const { at, title } of requests.values()) yield { kind: 'permission', at, title, answer: null };
  yield* queued.values();
}

function textOf(content: readonly ToolCallContent[]): string | null {
  const text = content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n');
  return text === '' ? null : text;
}

/** Yields the message whose turn begins, after the older ones: they were dropped, because the queue keeps its order. */
function* takeThrough(queued: Map<string, MessageEntry>, messageId: string, startedAt: number): Generator<MessageEntry, void> {
  if (!queued.has(messageId)) return;
  for (const [id, entry] of queued) {
    queued.delete(id);
    yield id === messageId ? { ...entry, at: startedAt, isDelivered: true } : entry;
    if (id === messageId) return;
  }
}
