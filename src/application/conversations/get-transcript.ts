import { isOpenCall, type MessageRole, type ToolCall, type ToolCallContent, type TurnStopReason } from '../../domain/agent.ts';
import type { PermissionOption } from '../../domain/permission.ts';
import type { Event, EventActor, EventKind } from '../../domain/event.ts';
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
  const transcript = new TranscriptBuilder();
  for await (const event of events) if (isTranscriptEvent(event)) yield* transcript.add(event);
  yield* transcript.unfinished();
}

type EventOf<K extends EventKind> = Extract<Event, { readonly kind: K }>;
type TranscriptEvent = EventOf<(typeof kinds)[number]>;

function isTranscriptEvent(event: Event): event is TranscriptEvent {
  return kinds.some((kind) => kind === event.kind);
}

/** Makes entries from the events of a conversation. */
class TranscriptBuilder {
  /** Messages of the user that the agent has not got, oldest first. */
  readonly #undelivered = new Map<string, MessageEntry>();
  /** The last begin of a turn, until the turn goes on: its message can go back into the queue instead. */
  #begun: EventOf<'turn_started'> | null = null;
  /** Tool calls of the turn that have not ended. Each of their events contains the full state. */
  readonly #openCalls = new Map<string, TranscriptEntry>();
  /** Requests of the turn that have no answer. */
  readonly #openRequests = new Map<string, EventOf<'permission_requested'>>();

  /** Returns the entries that the event completes. */
  add(event: TranscriptEvent): readonly TranscriptEntry[] {
    // A message of the user does not belong to the turn.
    if (event.kind === 'message' && event.data.role === 'user') return this.#addMessage(event);
    if (event.reason?.code === 'message_requeued') this.#begun = null;
    return [...this.#deliver(), ...this.#afterDelivery(event)];
  }

  #afterDelivery(event: TranscriptEvent): readonly TranscriptEntry[] {
    switch (event.kind) {
      case 'message':
        return this.#addMessage(event);
      case 'turn_started':
        this.#begun = event;
        return [];
      case 'tool_call':
        return this.#addCall(event);
      case 'permission_requested':
        this.#openRequests.set(event.data.permissionId, event);
        return [];
      case 'permission_answered':
        return this.#addAnswer(event);
      case 'turn_ended':
        return event.reason?.code === 'message_withdrawn' ? this.#takeUndelivered(event.data.messageId) : this.#endTurn(event);
    }
  }

  /** Returns the entries that still wait for an event. */
  unfinished(): readonly TranscriptEntry[] {
    const requests = [...this.#openRequests.values()].map(({ at, data: { title } }) => (
      { kind: 'permission', at, title, answer: null } as const
    ));
    return [...this.#deliver(), ...this.#openCalls.values(), ...requests, ...this.#undelivered.values()];
  }

  #addMessage({ at, userId, data: { messageId, role, channel, text } }: EventOf<'message'>): TranscriptEntry[] {
    if (channel !== 'answer') return [];
    const entry: MessageEntry = { kind: 'message', at, role, userId, text, isDelivered: role === 'agent' };
    if (role === 'agent') return [entry];
    this.#undelivered.set(messageId, entry);
    return [];
  }

  /** Returns the message whose turn has begun, after the older ones: they were dropped, because the queue keeps its order. */
  #deliver(): TranscriptEntry[] {
    const begun = this.#begun;
    const message = begun === null ? undefined : this.#undelivered.get(begun.data.messageId);
    this.#begun = null;
    if (begun === null || message === undefined) return [];
    const { at, data: { messageId } } = begun;
    const ids = [...this.#undelivered.keys()];
    const dropped = ids.slice(0, ids.indexOf(messageId)).flatMap((id) => this.#takeUndelivered(id));
    this.#undelivered.delete(messageId);
    return [...dropped, { ...message, at, isDelivered: true }];
  }

  #takeUndelivered(messageId: string): MessageEntry[] {
    const message = this.#undelivered.get(messageId);
    this.#undelivered.delete(messageId);
    return message === undefined ? [] : [message];
  }

  #addCall({ at, data }: EventOf<'tool_call'>): TranscriptEntry[] {
    const { toolCallId, title, toolKind, status, paths, content } = data;
    const failure = status === 'failed' ? textOf(content) : null;
    const entry: TranscriptEntry = { at, kind: 'tool_call', title, toolKind, status, paths, failure };
    if (isOpenCall(data)) {
      this.#openCalls.set(toolCallId, entry);
      return [];
    }
    this.#openCalls.delete(toolCallId);
    return [entry];
  }

  #addAnswer({ at, actor, userId, reason, data: { permissionId, optionId } }: EventOf<'permission_answered'>): TranscriptEntry[] {
    const request = this.#openRequests.get(permissionId)?.data;
    if (request === undefined) return [];
    this.#openRequests.delete(permissionId);
    const option = request.options.find((offered) => offered.optionId === optionId) ?? null;
    return [{ kind: 'permission', at, title: request.title, answer: { option, actor, userId, reason } }];
  }

  #endTurn({ at, reason, data: { stopReason } }: EventOf<'turn_ended'>): TranscriptEntry[] {
    const entries = [...this.#openCalls.values()];
    this.#openCalls.clear();
    this.#openRequests.clear();
    return stopReason === 'end_turn' ? entries : [...entries, { kind: 'turn_ended', at, stopReason, reason }];
  }
}

function textOf(content: readonly ToolCallContent[]): string | null {
  const text = content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n');
  return text === '' ? null : text;
}
