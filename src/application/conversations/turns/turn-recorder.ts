import type { ToolCallContent } from '../../../domain/agent.ts';
import type { Conversation } from '../../../domain/conversation.ts';
import { type EventActor, type EventBody, eventOf } from '../../../domain/event.ts';
import type { AgentUpdate } from '../../../ports/agent-protocol.ts';
import type { Clock } from '../../../ports/clock.ts';
import type { EventStore } from '../../../ports/event-store.ts';
import type { Random } from '../../../ports/random.ts';
import { EventWriter } from './event-writer.ts';

export interface RecorderDeps {
  readonly events: EventStore;
  readonly clock: Clock;
  readonly random: Random;
}

type Chunk = Extract<AgentUpdate, { kind: 'message_chunk' }>;

interface OpenMessage {
  readonly messageId: string;
  /** The agent's own name for it; null where it has none. */
  readonly named: string | null;
  readonly channel: Chunk['channel'];
  readonly parts: string[];
  length: number;
}

/** A message of an agent is ended, and another begun, when it is as long as this: it is gathered in memory. */
const maxMessage = 1_048_576;

/** Tool calls of a turn that are known to have been told of. */
const maxKnownCalls = 1000;

/**
 * Makes events of what an agent says in a turn. The parts of a message are written as they come, and the whole message
 * when it has ended: where the agent says another, in another channel, begins a tool call, or ends the turn.
 */
export class TurnRecorder {
  readonly #deps: RecorderDeps;
  readonly #conversation: Conversation;
  readonly #writer: EventWriter;
  readonly #calls = new Set<string>();
  #open: OpenMessage | null = null;

  constructor(deps: RecorderDeps, conversation: Conversation) {
    this.#deps = deps;
    this.#conversation = conversation;
    this.#writer = new EventWriter(deps.events);
  }

  /** Takes the update; answers when there is room for the next. Rejects where the log can't be written. */
  async take(update: AgentUpdate): Promise<void> {
    if (update.kind === 'message_chunk') this.#say(update);
    else this.#tell(bounded(update));
    await this.#writer.room();
  }

  /** Writes an event in its place among the others. */
  note(body: EventBody, actor: EventActor, reason: string | null = null): void {
    this.#writer.add(eventOf(this.#conversation, body, { at: this.#deps.clock.now(), actor, reason }));
  }

  /** Answers when all that was taken is written. Rejects where the log can't be written. */
  async settled(): Promise<void> {
    await this.#writer.drained();
  }

  /** Ends the message that is open, and answers when all is written. */
  async finish(): Promise<void> {
    this.#endMessage();
    await this.settled();
  }

  #say({ messageId: named, channel, text }: Chunk): void {
    if (text === '') return;
    const other = this.#open !== null && (this.#open.named !== named || this.#open.channel !== channel);
    if (other || (this.#open?.length ?? 0) >= maxMessage) this.#endMessage();
    this.#open ??= { messageId: this.#deps.random.id('msg'), named, channel, parts: [], length: 0 };
    const { messageId, parts } = this.#open;
    parts.push(text);
    this.#open.length += text.length;
    this.note({ kind: 'message_chunk', data: { messageId, channel, text } }, 'agent');
  }

  #tell(update: Exclude<AgentUpdate, Chunk>): void {
    switch (update.kind) {
      case 'tool_call':
        if (!this.#calls.has(update.call.toolCallId)) this.#begin(update.call.toolCallId);
        this.note({ kind: 'tool_call', data: update.call }, 'agent');
        return;
      case 'plan':
        this.note({ kind: 'plan', data: { entries: update.entries } }, 'agent');
        return;
      case 'usage': {
        const { usedTokens, contextTokens, cost } = update;
        this.note({ kind: 'usage', data: { usedTokens, contextTokens, cost } }, 'agent');
      }
    }
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
    const { messageId, channel, parts } = open;
    this.note({ kind: 'message', data: { messageId, role: 'agent', channel, text: parts.join('') } }, 'agent');
  }
}

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
