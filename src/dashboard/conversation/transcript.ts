import type { api } from '../../client/index.ts';
import { plural, readableName } from '../format.ts';

type Permission = api.PermissionRequestedEventData;

/** A row of the log. */
export type Entry = MessageEntry | { readonly key: string; readonly at: string } & (
  | { readonly kind: 'tool'; call: api.ToolCallEventData }
  | { readonly kind: 'permission'; readonly request: Permission }
  | { readonly kind: 'note'; readonly text: string; readonly reason: string | null; readonly isBad: boolean }
);

export interface MessageEntry {
  readonly kind: 'message';
  readonly key: string;
  readonly at: string;
  readonly role: 'user' | 'agent';
  /** The user who sent it; null for the agent, or if it is not known. */
  readonly userId: string | null;
  readonly channel: 'answer' | 'thought';
  text: string;
  isWhole: boolean;
  /** Why the agent does not get a message of the user. */
  readonly fate?: 'Withdrawn' | 'Not delivered';
}

/**
 * What changes the queue of messages. `taken`: it ends the waiting of a message and of those before it; of all, if there is no message.
 * `requeued`: the agent has not got the message of a turn, so it waits again, before the others.
 */
interface QueueChange {
  readonly kind: 'queue';
  readonly messageId: string | null;
  readonly change: 'taken' | 'withdrawn' | 'requeued';
}

type CallEntry = Extract<Entry, { readonly kind: 'tool' }>;

const failedStopReasons: ReadonlySet<string> = new Set(['failed', 'interrupted', 'refusal', 'max_tokens', 'max_turn_requests']);

/** The rows of a conversation, made from its events in order. */
export class Transcript {
  /** In the order of the events. */
  #log: (Entry | QueueChange)[] = [];
  plan: api.PlanEventData | null = null;
  usage: api.UsageEventData | null = null;
  workTree: api.WorkTreeChangedEventData | null = null;
  /** The chosen options by the id of the permission request; null if the request was withdrawn. */
  readonly answers = new Map<string, string | null>();
  readonly #byKey = new Map<string, Entry>();
  /** The message of the last turn. */
  #turn: string | null = null;
  /** The calls by id, before the first known start of a turn. */
  #firstCalls = new Map<string, CallEntry>();
  /** The calls of the last turn by id. Agents can reuse an id in another turn. */
  #calls = this.#firstCalls;

  /** Whether the message of the last turn is known. Then all that wait behind it are, because the queue keeps its order. */
  get hasTurn(): boolean {
    return this.#turn !== null && this.#byKey.has(this.#turn);
  }

  /** Returns the rows, and the messages that wait for the agent. A message of the user is placed where its turn began. */
  arranged(): { readonly rows: readonly Entry[]; readonly waiting: readonly MessageEntry[] } {
    const rows: Entry[] = [];
    let waiting = new Map<string, MessageEntry>();
    for (const entry of this.#log) {
      if (entry.kind === 'queue' && entry.change === 'requeued') waiting = new Map([...takeBack(rows, entry), ...waiting]);
      else if (entry.kind === 'queue') rows.push(...takeFrom(waiting, entry));
      else if (entry.kind === 'message' && entry.role === 'user') waiting.set(entry.key, entry);
      else rows.push(entry);
    }
    return { rows, waiting: [...waiting.values()] };
  }

  apply(event: api.Event): void {
    if (dropsMessages(event)) this.#changeQueue('taken', null);
    switch (event.kind) {
      case 'message': return this.#addMessage(event);
      case 'message_chunk': return this.#addChunk(event);
      case 'tool_call': return this.#addCall(event);
      case 'permission_requested':
        return this.#add({ kind: 'permission', key: event.data.permission_id, at: event.at, request: event.data });
      case 'permission_answered': return void this.answers.set(event.data.permission_id, event.data.option_id);
      case 'plan': return void (this.plan = event.data);
      case 'usage': return void (this.usage = event.data);
      case 'work_tree_changed': return void (this.workTree = event.data);
      case 'turn_started':
        this.#calls = new Map();
        this.#turn = event.data.message_id;
        return this.#changeQueue('taken', event.data.message_id);
      case 'turn_ended': return this.#endTurn(event);
      case 'start_step': case 'setup_script': case 'microagents': case 'sandbox_moved': case 'conversation_archived': {
        const text = noteOf(event);
        if (text !== null) this.#note(event, text, event.kind === 'sandbox_moved' ? isBadState(event.data.to) : text.includes('failed'));
        return;
      }
      case 'agent_started': case 'execution_changed': case 'conversation_deleted':
    }
  }

  /** Returns the content of the call that an open request is about. It is a call of the last turn. */
  contentFor({ tool_call_id: id }: Permission): api.ToolCallEventData['content'] {
    return this.#calls.get(id)?.call.content ?? [];
  }

  /** Inserts older events before the first row. */
  prepend(events: readonly api.Event[]): void {
    const older = new Transcript();
    for (const event of events) older.apply(event);
    // The last turn of the older events continues in the first rows.
    const repeated = new Set<Entry | undefined>([...this.#firstCalls.keys()].map((id) => older.#calls.get(id)));
    const isNew = (entry: Entry | QueueChange) => entry.kind === 'queue' || (!this.#byKey.has(entry.key) && !repeated.has(entry));
    this.#log = [...older.#log.filter(isNew), ...this.#log];
    for (const [id, call] of older.#calls) if (!this.#firstCalls.has(id)) this.#firstCalls.set(id, call);
    if (older.#calls !== older.#firstCalls) this.#firstCalls = older.#firstCalls;
    for (const [key, entry] of older.#byKey) if (!this.#byKey.has(key)) this.#byKey.set(key, entry);
    for (const [id, answer] of older.answers) if (!this.answers.has(id)) this.answers.set(id, answer);
    this.#turn ??= older.#turn;
    this.plan ??= older.plan;
    this.usage ??= older.usage;
    this.workTree ??= older.workTree;
  }

  #addMessage({ at, user_id: userId, data: { message_id: key, role, channel, text } }: api.MessageEvent): void {
    const known = this.#byKey.get(key);
    if (known?.kind === 'message') Object.assign(known, { text, isWhole: true });
    else this.#add({ kind: 'message', key, at, role, userId, channel, text, isWhole: true });
  }

  #addChunk({ at, data: { message_id: key, channel, text } }: api.MessageChunkEvent): void {
    const known = this.#byKey.get(key);
    if (known?.kind !== 'message') {
      this.#add({ kind: 'message', key, at, role: 'agent', userId: null, channel, text, isWhole: false });
    } else if (!known.isWhole) known.text += text;
  }

  #addCall({ id, at, data }: api.ToolCallEvent): void {
    const known = this.#calls.get(data.tool_call_id);
    if (known !== undefined) return void (known.call = data);
    const entry: CallEntry = { kind: 'tool', key: `event-${id}`, at, call: data };
    this.#calls.set(data.tool_call_id, entry);
    this.#add(entry);
  }

  #endTurn(event: api.TurnEndedEvent): void {
    const { stop_reason: stop, message_id: messageId } = event.data;
    const code = event.status_reason?.code;
    if (code === 'message_withdrawn') return this.#changeQueue('withdrawn', messageId);
    const isRequeued = code === 'message_requeued';
    if (isRequeued) this.#changeQueue('requeued', messageId);
    const isBad = !isRequeued && failedStopReasons.has(stop);
    if (stop !== 'end_turn') this.#note(event, `The turn ended: ${readableName(stop).toLowerCase()}.`, isBad);
  }

  #note({ id, at, reason }: api.Event, text: string, isBad: boolean): void {
    this.#add({ kind: 'note', key: `event-${id}`, at, text, reason, isBad });
  }

  #changeQueue(change: QueueChange['change'], messageId: string | null): void {
    this.#log.push({ kind: 'queue', messageId, change });
  }

  #add(entry: Entry): void {
    this.#log.push(entry);
    this.#byKey.set(entry.key, entry);
  }
}

/** Takes the messages out of the queue. It keeps its order, so those before a message whose turn begins were dropped. */
function* takeFrom(waiting: Map<string, MessageEntry>, { messageId, change }: QueueChange): Generator<MessageEntry> {
  const isWithdrawn = change === 'withdrawn';
  if (messageId !== null && !waiting.has(messageId)) return;
  for (const [id, entry] of waiting) {
    if (isWithdrawn && id !== messageId) continue;
    waiting.delete(id);
    yield isWithdrawn ? { ...entry, fate: 'Withdrawn' } : id === messageId ? entry : { ...entry, fate: 'Not delivered' };
    if (id === messageId) return;
  }
}

/** Takes the message out of the rows. */
function takeBack(rows: Entry[], { messageId }: QueueChange): [string, MessageEntry][] {
  const index = rows.findLastIndex(({ key }) => key === messageId);
  const [message] = index === -1 ? [] : rows.splice(index, 1);
  return message?.kind === 'message' ? [[message.key, message]] : [];
}

function dropsMessages({ kind, data, status_reason: reason }: api.Event): boolean {
  return kind === 'conversation_archived' || reason?.code === 'messages_dropped' || (kind === 'start_step' && data.to === 'ERROR');
}

function isBadState(status: string | null): boolean {
  return status === 'ERROR' || status === 'MISSING';
}

type NotedEvent = api.StartStepEvent | api.SetupScriptEvent | api.MicroagentsEvent | api.SandboxMovedEvent | api.ConversationArchivedEvent;

/** Returns the text of such an event; null if it is not of interest. */
function noteOf(event: NotedEvent): string | null {
  switch (event.kind) {
    case 'start_step': return event.data.to === 'READY' ? 'Ready.' : event.data.to === 'ERROR' ? 'The start failed.' : null;
    case 'setup_script': return event.data.status === 'running' ? null : `Setup script ${event.data.status}.`;
    case 'sandbox_moved': return event.data.to === null ? 'The sandbox was deleted.' : `Sandbox: ${event.data.to.toLowerCase()}.`;
    case 'microagents': return microagentsNote(event.data);
    case 'conversation_archived': return 'The conversation was archived.';
  }
}

const whyLeftOut = {
  front_matter: 'invalid front matter', not_readable: 'could not be read', too_large: 'too large', too_many: 'too many microagents',
} as const;

function microagentsNote({ given, left_out: leftOut, left_out_count: count }: api.MicroagentsEvent['data']): string | null {
  const paths = given.map(({ path }) => path).join(', ');
  const omitted = leftOut.map(({ path, why }) => `${path} (${whyLeftOut[why]})`).join(', ');
  const more = count > leftOut.length ? ` and ${count - leftOut.length} more` : '';
  const notes = [
    ...(given.length > 0 ? [`The agent got ${plural(given.length, 'microagent')}: ${paths}.`] : []),
    ...(count > 0 ? [`Left out: ${omitted}${more}.`] : []),
  ];
  return notes.length === 0 ? null : notes.join(' ');
}
