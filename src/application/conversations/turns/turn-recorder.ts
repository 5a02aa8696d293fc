import type { Conversation } from '../../../domain/conversation.ts';
import { type EventActor, type EventBody, type EventDraft, eventOf } from '../../../domain/event.ts';
import { canonicalJson } from '../../../domain/fingerprint.ts';
import type { Reason } from '../../../domain/reason.ts';
import type { AgentUpdate } from '../../../ports/agent-protocol.ts';
import type { MemoryShare } from '../../agents/agent-memory.ts';
import { throughStoreOutage } from '../../timers.ts';
import type { StepDeps } from '../conversation-reconciler.ts';

interface RecorderDeps extends Pick<StepDeps, 'events' | 'clock' | 'random'> {
  /** The sequence number of the newest event before the turn. */
  readonly from: number;
  /** Fires when the turn is to end. */
  readonly signal: AbortSignal;
  readonly memory: MemoryShare;
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

/** A message is collected in memory. One that is as long as this is ended, and another begins. */
const maxMessage = 1_048_576;

const maxKnownCalls = 1000;

/** Parts of a message are written as they arrive, and the whole when another message, channel or tool call begins, or the turn ends. */
export class TurnRecorder {
  readonly #deps: RecorderDeps;
  readonly #conversation: Conversation;
  readonly #writer: EventWriter;
  readonly #calls = new Set<string>();
  #open: OpenMessage | null = null;

  constructor(deps: RecorderDeps, conversation: Conversation) {
    this.#deps = deps;
    this.#conversation = conversation;
    this.#writer = new EventWriter(deps);
  }

  /** Records the update. Resolves when the next may come. Rejects if the log can't be written. */
  async record(update: AgentUpdate): Promise<void> {
    if (update.kind === 'message_chunk') this.#recordChunk(update);
    else this.#recordOther(bounded(update));
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
    this.#deps.memory.hold(-(this.#open?.length ?? 0));
    this.#open = null;
  }

  #recordChunk({ messageId: agentMessageId, channel, text }: Chunk): void {
    if (text === '') return;
    const isOther = this.#open !== null && (this.#open.agentMessageId !== agentMessageId || this.#open.channel !== channel);
    if (isOther || (this.#open?.length ?? 0) >= maxMessage) this.#endMessage();
    this.#open ??= { messageId: this.#deps.random.id('msg'), agentMessageId, channel, parts: [], length: 0 };
    const { messageId, parts } = this.#open;
    parts.push(text);
    this.#open.length += text.length;
    this.#deps.memory.hold(text.length);
    this.note({ kind: 'message_chunk', data: { messageId, channel, text } }, 'agent');
  }

  #recordOther(update: OtherUpdate): void {
    if (update.kind === 'tool_call' && !this.#calls.has(update.call.toolCallId)) this.#begin(update.call.toolCallId);
    this.note(bodyOf(update), 'agent');
  }

  #begin(toolCallId: string): void {
    this.#endMessage();
    const [oldest] = this.#calls;
    if (this.#calls.size >= maxKnownCalls && oldest !== undefined) this.#calls.delete(oldest);
    this.#calls.add(toolCallId);
  }

  #endMessage(): void {
    const open = this.#open;
    this.#open = null;
    if (open === null) return;
    const { messageId, channel, parts, length } = open;
    this.#deps.memory.hold(-length);
    this.note({ kind: 'message', data: { messageId, role: 'agent', channel, text: parts.join('') } }, 'agent');
  }
}

function bodyOf(update: OtherUpdate): EventBody {
  if (update.kind === 'tool_call') return { kind: 'tool_call', data: update.call };
  if (update.kind === 'plan') return { kind: 'plan', data: { entries: update.entries } };
  const { kind, ...data } = update;
  return { kind, data };
}

/** The longest text of an event, and of all its texts together. Longer ones are cut, with a note of how much is missing. */
const maxText = 65_536;
const maxTexts = 262_144;
const maxItems = 200;

type OtherUpdate = Exclude<AgentUpdate, Chunk>;

export function bounded(update: OtherUpdate): OtherUpdate {
  let left = maxTexts;
  const cut = (text: string): string => {
    const room = Math.min(maxText, left);
    left -= Math.min(text.length, room);
    return text.length <= room ? text : `${text.slice(0, room).toWellFormed()} [... ${text.length - room} more]`;
  };
  const smaller = (_key: string, value: unknown): unknown =>
    typeof value === 'string' ? cut(value) : Array.isArray(value) ? value.slice(0, maxItems) : value;
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the shape stays; only texts and lists become shorter
  return JSON.parse(JSON.stringify(update, smaller)) as OtherUpdate;
}

/** How many events may wait to be written. The agent is held back until there are fewer. */
const maxWaiting = 200;
/** Waiting parts of a message are joined up to this many characters. */
const maxJoined = 16_384;

type EventWriterDeps = Omit<RecorderDeps, 'random'>;

/** Writes one batch at a time. A batch is tried again while the store does not answer; if it fails, nothing more is written. */
export class EventWriter {
  readonly #deps: EventWriterDeps;
  /** The sequence number of the last event that was written, or was there before the first. */
  #last: number;
  #waiting: EventDraft[] = [];
  #writing: Promise<void> | null = null;
  #failure: { readonly error: unknown } | null = null;
  #held = 0;

  constructor(deps: EventWriterDeps) {
    this.#deps = deps;
    this.#last = deps.from;
  }

  add(event: EventDraft): void {
    if (this.#failure !== null) return;
    this.#hold(JSON.stringify(event.data).length);
    const last = this.#waiting.at(-1);
    const joined = last === undefined ? null : join(last, event);
    if (joined === null) this.#waiting.push(event);
    else this.#waiting[this.#waiting.length - 1] = joined;
    this.#writing ??= this.#write();
  }

  /** Resolves when more can be added. Rejects if a write has failed. */
  async ready(): Promise<void> {
    const isMuch = (): boolean => this.#waiting.length >= maxWaiting || (this.#held > 0 && this.#deps.memory.isFull);
    while (isMuch() && this.#failure === null) await this.#writing;
    this.#check();
  }

  /** Resolves when everything is written. Rejects if a write has failed. */
  async drained(): Promise<void> {
    await this.#writing;
    this.#check();
  }

  async #write(): Promise<void> {
    try {
      while (this.#waiting.length > 0 && this.#failure === null) {
        const batch = this.#waiting;
        const held = this.#held;
        this.#waiting = [];
        await this.#append(batch);
        this.#hold(-held);
        // Readers get this batch before the next is written.
        await new Promise<void>((resolve) => void setImmediate(resolve));
      }
    } catch (error) {
      this.#failure = { error };
      this.#waiting = [];
      this.#hold(-this.#held);
    } finally {
      this.#writing = null;
    }
  }

  async #append(batch: readonly EventDraft[]): Promise<void> {
    const { events, clock, signal } = this.#deps;
    this.#last = await throughStoreOutage(clock, signal, async (failures) => {
      // A write that failed may have been made.
      const found = failures === 0 ? null : await this.#find(batch);
      return found ?? (await events.append(batch));
    });
  }

  /** Returns the sequence number of the batch's last event in the log, as `append` does; null if the batch was not written. */
  async #find(batch: readonly EventDraft[]): Promise<number | null> {
    const last = batch.at(-1);
    if (last === undefined) return null;
    const { ownerId, conversationId, kind, at } = last;
    const data = canonicalJson(last.data);
    const filter = { ownerId, ...(conversationId !== null && { conversationId }), kinds: [kind] };
    const written = await this.#deps.events.read(filter, this.#last, 1000);
    return written.findLast((event) => event.at === at && canonicalJson(event.data) === data)?.sequence ?? null;
  }

  #hold(bytes: number): void {
    this.#held += bytes;
    this.#deps.memory.hold(bytes);
  }

  #check(): void {
    if (this.#failure !== null) throw this.#failure.error;
  }
}

/** Returns two parts of one message as one; null if they are of two messages, or too long together. */
function join(first: EventDraft, second: EventDraft): EventDraft | null {
  if (first.kind !== 'message_chunk' || second.kind !== 'message_chunk') return null;
  if (first.data.messageId !== second.data.messageId || first.data.text.length + second.data.text.length > maxJoined) return null;
  return { ...first, data: { ...first.data, text: first.data.text + second.data.text } };
}
