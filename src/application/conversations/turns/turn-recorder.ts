import { isOpenCall, type ToolCall, type ToolCallContent } from '../../../domain/agent.ts';
import type { Conversation, TurnPosition } from '../../../domain/conversation.ts';
import { type Event, type EventActor, type EventBody, type EventKind, eventOf } from '../../../domain/event.ts';
import type { Reason } from '../../../domain/reason.ts';
import type { AgentUpdate } from '../../../ports/agent-protocol.ts';
import type { EventStore } from '../../../ports/event-store.ts';
import { EventWriter, type EventWriterDeps } from './event-writer.ts';

interface RecorderDeps extends Omit<EventWriterDeps, 'from'> {
  readonly recorded: RecordedTurn;
  /** The id of the turn's message. The ids of what the agent says and requests begin with it. */
  readonly turnId: string;
}

type Chunk = Extract<AgentUpdate, { kind: 'message_chunk' }>;

interface OpenMessage {
  readonly messageId: string;
  /** The agent's own id of the message; null if it has none. */
  readonly agentMessageId: string | null;
  readonly channel: Chunk['channel'];
  readonly parts: string[];
  length: number;
}

/** A message is collected in memory. At this length it ends, and a new one begins. */
const maxMessage = 1_048_576;

const maxKnownCalls = 1000;

/** Writes the parts of a message as they arrive. Writes the whole when another message, channel or tool call begins, or the turn ends. */
export class TurnRecorder {
  readonly #deps: RecorderDeps;
  readonly #conversation: Conversation;
  readonly #writer: EventWriter;
  /** Whether each tool call has no result yet. */
  readonly #calls = new Map<string, boolean>();
  #open: OpenMessage | null = null;
  #messages = 0;
  #requests = 0;
  /** How much of the next output is already in the log. */
  #written: number;

  constructor(deps: RecorderDeps, conversation: Conversation) {
    this.#deps = deps;
    this.#conversation = conversation;
    this.#writer = new EventWriter({ ...deps, from: deps.recorded.lastSequence });
    this.#written = deps.recorded.written;
  }

  /** True while the agent waits for a result of a tool. */
  get hasOpenCalls(): boolean {
    return [...this.#calls.values()].includes(true);
  }

  /** True while updates or requests for permission come that are already in the log. */
  get isReplaying(): boolean {
    return this.#written > 0 || this.#requests < this.#deps.recorded.permissions.size;
  }

  /** Returns the id of the agent's next request for permission. It is the same in each process that runs the turn. */
  nextPermissionId(): string {
    return `perm-${this.#deps.turnId}-${(this.#requests += 1)}`;
  }

  /** Records the update. Resolves when the next one can be recorded. Rejects if the log can't be written. */
  async record(update: AgentUpdate): Promise<void> {
    if (update.kind === 'message_chunk') this.#recordChunk(update);
    else if (update.kind === 'message_end') this.#endMessage();
    else this.#recordOther(limitUpdate(update));
    await this.#writer.ready();
  }

  note(body: EventBody, actor: EventActor, reason: Reason | null = null): void {
    this.#writer.add(eventOf(this.#conversation, body, { at: this.#deps.clock.now(), actor, reason }));
  }

  /** Resolves when everything is written. Rejects if the log can't be written. */
  async settled(): Promise<void> {
    await this.#writer.drained();
  }

  /** Ends the open message. Resolves when everything is written. */
  async finish(): Promise<void> {
    this.#endMessage();
    await this.settled();
  }

  /** Drops the open message, because it can't be written. */
  discard(): void {
    this.#deps.memory.add(-(this.#open?.length ?? 0));
    this.#open = null;
  }

  #recordChunk({ messageId: agentMessageId, channel, text }: Chunk): void {
    if (text === '') return;
    const isOther = this.#open !== null && (this.#open.agentMessageId !== agentMessageId || this.#open.channel !== channel);
    if (isOther || (this.#open?.length ?? 0) >= maxMessage) this.#endMessage();
    this.#open ??= { messageId: `${this.#deps.turnId}-${(this.#messages += 1)}`, agentMessageId, channel, parts: [], length: 0 };
    const { messageId, parts } = this.#open;
    parts.push(text);
    this.#open.length += text.length;
    this.#deps.memory.add(text.length);
    this.#writeOutput({ kind: 'message_chunk', data: { messageId, channel, text } });
  }

  #recordOther(update: OtherUpdate): void {
    if (update.kind === 'tool_call') this.#noteCall(update.call);
    this.#writeOutput(bodyOf(update));
  }

  #noteCall(call: ToolCall): void {
    const { toolCallId } = call;
    if (!this.#calls.has(toolCallId)) {
      this.#endMessage();
      const [oldest] = this.#calls.keys();
      if (this.#calls.size >= maxKnownCalls && oldest !== undefined) this.#calls.delete(oldest);
    }
    this.#calls.set(toolCallId, isOpenCall(call));
  }

  #endMessage(): void {
    const open = this.#open;
    this.#open = null;
    if (open === null) return;
    const { messageId, channel, parts, length } = open;
    this.#deps.memory.add(-length);
    this.#writeOutput({ kind: 'message', data: { messageId, role: 'agent', channel, text: parts.join('') } });
  }

  /** Writes the agent's output, without the part that an earlier process has written. */
  #writeOutput(body: EventBody): void {
    const length = lengthOf(body);
    const rest = body.kind === 'message_chunk' && this.#written < length
      ? { ...body, data: { ...body.data, text: body.data.text.slice(this.#written) } } : body;
    const isWritten = this.#written >= length;
    this.#written = Math.max(0, this.#written - length);
    if (!isWritten) this.note(rest, 'agent');
  }
}

/** The kinds of events with an agent's output. Every process writes the same ones for a turn, but may split chunks differently. */
const agentOutputKinds = ['message_chunk', 'message', 'tool_call', 'plan', 'usage'] as const satisfies readonly EventKind[];

/** Parts of a message are counted in characters, because they may be joined. */
function lengthOf(body: EventBody): number {
  return body.kind === 'message_chunk' ? body.data.text.length : 1;
}

/** Returns the amount of agent output: the characters of message parts, plus one for each other event. A queued message is the user's. */
function outputAmount(events: readonly Event[]): number {
  const outputKinds: ReadonlySet<EventKind> = new Set(agentOutputKinds);
  return events.reduce((sum, event) => sum + (event.actor === 'agent' && outputKinds.has(event.kind) ? lengthOf(event) : 0), 0);
}

function bodyOf(update: OtherUpdate): EventBody {
  if (update.kind === 'tool_call') return { kind: 'tool_call', data: update.call };
  if (update.kind === 'plan') return { kind: 'plan', data: { entries: update.entries } };
  const { kind, ...data } = update;
  return { kind, data };
}

/** The maximum length of one text of an event, of all its texts, and of a list. Longer ones are cut, and say how much is missing. */
const maxText = 65_536;
const maxTexts = 262_144;
const maxItems = 200;

type OtherUpdate = Exclude<AgentUpdate, Chunk | { kind: 'message_end' }>;

/** Returns a copy with texts and lists of limited size. */
export function limitSize<T extends object>(whole: T): T {
  let left = maxTexts;
  const cut = (text: string): string => {
    const room = Math.min(maxText, left);
    left -= Math.min(text.length, room);
    return text.length <= room ? text : `${text.slice(0, room).toWellFormed()} [... ${text.length - room} more]`;
  };
  const smaller = (_key: string, value: unknown): unknown =>
    typeof value === 'string' ? cut(value) : Array.isArray(value) ? value.slice(0, maxItems) : value;
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the shape stays; only texts and lists become shorter
  return JSON.parse(JSON.stringify(whole, smaller)) as T;
}

/** Like {@link limitSize}. Each list that was cut gets a last item that says how much is missing. */
export function limitUpdate(whole: OtherUpdate): OtherUpdate {
  const limited = limitSize(whole);
  if (limited.kind === 'plan' && whole.kind === 'plan') {
    return { ...limited, entries: noted(limited.entries, whole.entries, (content) => ({ content, priority: 'low', status: 'pending' })) };
  }
  if (limited.kind !== 'tool_call' || whole.kind !== 'tool_call') return limited;
  const { call } = limited;
  const content = noted<ToolCallContent>(call.content, whole.call.content, (text) => ({ type: 'text', text }));
  return { ...limited, call: { ...call, paths: noted(call.paths, whole.call.paths, (text) => text), content } };
}

function noted<T>(items: readonly T[], { length }: readonly T[], note: (text: string) => T): readonly T[] {
  return length > items.length ? [...items, note(`[... ${length - items.length} more]`)] : items;
}

/** The part of a turn that is in the log when this process begins to run it. */
export interface RecordedTurn {
  /** How much of the agent's output is in the log, see `outputAmount`. */
  readonly written: number;
  /** The permission requests by id. Null if there is no answer yet. */
  readonly permissions: ReadonlyMap<string, { readonly optionId: string | null } | null>;
  /** The sequence number of the newest event when the log was read. */
  readonly lastSequence: number;
}

/** Returns the recorded part of a turn that begins now. */
export async function nothingRecorded(events: EventStore): Promise<RecordedTurn> {
  return { written: 0, permissions: new Map(), lastSequence: await events.latest() };
}

/** An event can have 64 KiB, and many turns may be taken over at once. */
const pageSize = 100;

/** Reads the part of the turn that an earlier process wrote into the log. */
export async function readRecordedTurn(
  events: EventStore, { id: conversationId, ownerId }: Conversation, { from }: TurnPosition,
): Promise<RecordedTurn> {
  const lastSequence = await events.latest();
  const filter = { ownerId, conversationId, kinds: [...agentOutputKinds, 'permission_requested', 'permission_answered'] as const };
  const permissions = new Map<string, { readonly optionId: string | null } | null>();
  let written = 0;
  for (let after = from, page: readonly Event[]; ; after = page.at(-1)?.sequence ?? after) {
    page = await events.read(filter, after, pageSize);
    for (const { kind, data } of page) {
      if (kind === 'permission_requested') permissions.set(data.permissionId, null);
      if (kind === 'permission_answered') permissions.set(data.permissionId, { optionId: data.optionId });
    }
    written += outputAmount(page);
    if (page.length < pageSize) return { written, permissions, lastSequence };
  }
}
