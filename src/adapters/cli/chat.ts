import type { Api } from '../../client/client.ts';
import {
  conversation, followEvents, messageAccepted, type PermissionAsked, readEvents, type ShownEvent,
} from '../../client/events.ts';
import { Terminal, type TerminalOptions } from './terminal.ts';
import { Transcript } from './transcript.ts';

const help = 'Type a message, one a line. /cancel stops the turn, /pause lets the sandbox rest, /quit leaves; the conversation stays.';
/** Statuses that a sandbox never leaves for RUNNING; null is gone. */
const lost: ReadonlySet<string | null> = new Set(['ERROR', 'MISSING', null]);

/**
 * Talks with the agent of a conversation until its input ends and every message is answered, or until it is left. Its exit code
 * is 1 where the start failed, the conversation was ended, a message could not be sent, or a turn failed meanwhile.
 */
export class Chat {
  readonly #api: Api;
  readonly #path: string;
  readonly #id: string;
  readonly #terminal: Terminal;
  readonly #transcript: Transcript;
  readonly #leaving = new AbortController();
  readonly #pending = new PendingMessages();
  /** Typed by a person, and so on the screen already. */
  readonly #typed: string[] = [];
  #permission: PermissionAsked | null = null;
  #input: Promise<void> = Promise.resolve();
  #underWay = 0;
  #inputEnded = false;
  /** What came before it was joined is over. */
  #live = false;
  #ready = false;
  #code = 0;

  constructor(api: Api, id: string, options: TerminalOptions) {
    this.#api = api;
    this.#id = id;
    this.#path = `/api/v1/app-conversations/${id}`;
    this.#terminal = new Terminal(options, {
      line: (line) => this.#take(line.trim()),
      end: () => this.#endInput(),
      interrupt: () => this.#interrupt(),
    });
    this.#transcript = new Transcript(this.#terminal);
  }

  /** Shows what was said, sends the message, if there is one, and talks on. Answers with the exit code. */
  async run(message: string | null): Promise<number> {
    const { signal } = this.#leaving;
    try {
      if (this.#terminal.interactive) this.#transcript.line(help);
      if (message !== null) this.#after(() => this.#send(message));
      const last = await readEvents(this.#api, `${this.#path}/events`, (event) => this.#on(event));
      await this.#join();
      const onLost = (why: string): void => this.#transcript.line(why);
      for await (const event of followEvents(this.#api, `${this.#path}/events/stream?after=${last}`, { signal, onLost })) await this.#on(event);
    } finally {
      this.#leaving.abort();
      this.#terminal.close();
    }
    return this.#code;
  }

  async #on(event: ShownEvent): Promise<void> {
    const own = event.kind === 'message' && event.data.role === 'user' && this.#typed[0] === event.data.text;
    if (own) this.#typed.shift();
    else this.#transcript.show(event);
    switch (event.kind) {
      case 'start_step':
        if (this.#live && (event.data.to === 'READY' || event.data.to === 'ERROR')) await this.#look();
        break;
      case 'message':
        if (event.data.role === 'user') this.#pending.taken(event.data.message_id);
        break;
      case 'permission_requested':
        this.#permission = event.data;
        await this.#leaveIfNobodyAnswers();
        break;
      case 'permission_answered':
        this.#permission = null;
        break;
      case 'turn_ended':
        this.#pending.ended(event.data.message_id);
        if (event.data.stop_reason === 'failed' || event.data.stop_reason === 'interrupted') this.#fail();
        break;
      case 'sandbox_moved':
        if (lost.has(event.data.to)) {
          this.#pending.forget();
          this.#fail();
        }
        break;
      case 'conversation_deleted':
        this.#leave(1);
        break;
      case 'message_chunk':
      case 'tool_call':
      case 'plan':
      case 'agent_started':
    }
    this.#leaveWhenDone();
  }

  async #join(): Promise<void> {
    this.#live = true;
    await this.#look();
    this.#leaveWhenDone();
  }

  /** Is there an agent to talk with? */
  async #look(): Promise<void> {
    const { start_status, execution_status } = await this.#api.get(this.#path, conversation);
    if (start_status === 'ERROR') this.#leave(1);
    if (start_status !== 'READY' || this.#leaving.signal.aborted) return;
    this.#ready = true;
    if (execution_status === null) {
      this.#transcript.line('Its spec names no agent: nobody answers here. Choose one that does with --spec.');
      this.#leave(1);
    } else this.#terminal.ask();
  }

  #take(line: string): void {
    if (line === '') return;
    if (line === '/quit') this.#leave(this.#code);
    else if (line === '/cancel') this.#after(() => this.#cancel());
    else if (line === '/pause') this.#after(() => this.#pause());
    else if (line === '/help') this.#transcript.line(help);
    else this.#after(() => this.#say(line));
  }

  /** One after the other, in the order in which they were typed. */
  #after(work: () => Promise<void>): void {
    this.#underWay += 1;
    this.#input = this.#inTurn(this.#input, work);
  }

  async #inTurn(before: Promise<void>, work: () => Promise<void>): Promise<void> {
    await before;
    try {
      if (!this.#leaving.signal.aborted) await work();
    } catch (error) {
      this.#transcript.line(error instanceof Error ? error.message : String(error));
      this.#code = 1;
    }
    this.#underWay -= 1;
    this.#leaveWhenDone();
  }

  async #say(line: string): Promise<void> {
    if (this.#permission !== null) return await this.#answer(this.#permission, line);
    if (this.#terminal.interactive) this.#typed.push(line);
    await this.#send(line);
  }

  async #send(text: string): Promise<void> {
    const { message_id } = await this.#api.post(`${this.#path}/messages`, { content: [{ type: 'text', text }] }, messageAccepted);
    this.#pending.taken(message_id);
  }

  async #answer({ permission_id, options }: PermissionAsked, line: string): Promise<void> {
    const option = /^\d+$/.test(line) ? options[Number(line) - 1] : undefined;
    if (option === undefined) {
      this.#transcript.line(`Answer with a number from 1 to ${options.length}.`);
      return;
    }
    await this.#api.post(`${this.#path}/permissions/${permission_id}`, { option_id: option.option_id }, conversation);
    if (this.#permission?.permission_id === permission_id) this.#permission = null;
  }

  async #cancel(): Promise<void> {
    await this.#api.post(`${this.#path}/cancel`, undefined, conversation);
  }

  async #pause(): Promise<void> {
    const { sandbox_id } = await this.#api.get(this.#path, conversation);
    await this.#api.post(`/api/v1/sandboxes/${sandbox_id ?? ''}/pause`, undefined, conversation.pick({ id: true }));
  }

  #endInput(): void {
    if (this.#leaving.signal.aborted) return;
    this.#inputEnded = true;
    this.#after(() => this.#leaveIfNobodyAnswers());
  }

  /** The first stops the turn, where there is one; the next leaves. */
  #interrupt(): void {
    if (this.#pending.isEmpty) {
      this.#leave(this.#code);
      return;
    }
    this.#pending.forget();
    this.#transcript.line('Stopping the turn; once more leaves.');
    this.#after(() => this.#cancel());
  }

  /** Without a person the wait would have no end; what the conversation's policy answers, nobody has to. */
  async #leaveIfNobodyAnswers(): Promise<void> {
    if (this.#permission === null || !this.#inputEnded) return;
    const { execution_status } = await this.#api.get(this.#path, conversation);
    if (execution_status !== 'waiting_for_permission') return;
    this.#transcript.line(`Nobody is here to answer, and the conversation waits: skep chat --conversation ${this.#id}, or start with --permissions allow or deny.`);
    this.#leave(1);
  }

  /** What failed before it was joined is history. */
  #fail(): void {
    if (this.#live) this.#code = 1;
  }

  #leaveWhenDone(): void {
    if (this.#inputEnded && this.#live && this.#ready && this.#underWay === 0 && this.#pending.isEmpty) this.#leave(this.#code);
  }

  #leave(code: number): void {
    if (this.#leaving.signal.aborted) return;
    this.#code = code;
    if (this.#terminal.interactive) this.#transcript.line(`The conversation stays: skep chat --conversation ${this.#id}`);
    this.#leaving.abort();
  }
}

/** The messages whose turn has not ended. What ends a message may come before it is known that it was taken in. */
class PendingMessages {
  readonly #waiting = new Set<string>();
  readonly #ended = new Set<string>();

  get isEmpty(): boolean {
    return this.#waiting.size === 0;
  }

  taken(messageId: string): void {
    if (!this.#ended.has(messageId)) this.#waiting.add(messageId);
  }

  ended(messageId: string): void {
    this.#ended.add(messageId);
    this.#waiting.delete(messageId);
  }

  /** None of them is waited for any more. */
  forget(): void {
    for (const messageId of this.#waiting) this.ended(messageId);
  }
}
