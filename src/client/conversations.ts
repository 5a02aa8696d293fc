/// <reference lib="esnext.disposable" preserve="true" />
import type { CallOptions, Connection } from './connection.ts';
import { type EventOptions, followEvents, latestEventId } from './event-stream.ts';
import { SkepError } from './failures.ts';
import type { AppConversation, AppConversationStartRequest, Event, Operations } from './openapi.ts';

type ListQuery = Operations['GET /api/v1/app-conversations']['query'];

export class Conversations {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  async start({ signal, silenceMs, ...body }: AppConversationStartRequest & CallOptions = {}): Promise<Conversation> {
    const input = { body, signal, silenceMs };
    return new Conversation(this.#connection, await this.#connection.request('POST /api/v1/app-conversations', input));
  }

  async get(id: string, options: CallOptions = {}): Promise<Conversation> {
    const input = { path: { id }, ...options };
    return new Conversation(this.#connection, await this.#connection.request('GET /api/v1/app-conversations/{id}', input));
  }

  list(query?: ListQuery, options: CallOptions = {}): AsyncGenerator<AppConversation, void> {
    return this.#connection.items('GET /api/v1/app-conversations', { query, ...options });
  }
}

/** A conversation with an agent. */
export class Conversation implements AsyncDisposable {
  readonly #connection: Connection;
  /** The state at the last request. */
  state: AppConversation;

  constructor(connection: Connection, state: AppConversation) {
    this.#connection = connection;
    this.state = state;
  }

  get id(): string {
    return this.state.id;
  }

  async refresh(options: CallOptions = {}): Promise<AppConversation> {
    this.state = await this.#connection.request('GET /api/v1/app-conversations/{id}', this.#input(options));
    return this.state;
  }

  /** Yields events from the beginning of the log, or after an event, until the conversation is deleted. */
  events(options: Omit<EventOptions, 'conversation'> = {}): AsyncGenerator<Event, void> {
    return followEvents(this.#connection, { ...options, conversation: this.id });
  }

  /** Adds a message to the agent's queue. Returns its id, which the events of its turn contain. */
  async send(text: string, options: CallOptions = {}): Promise<string> {
    const input = { ...this.#input(options), body: { content: [{ type: 'text', text } as const] } };
    return (await this.#connection.request('POST /api/v1/app-conversations/{id}/messages', input)).message_id;
  }

  /**
   * Sends a message. Yields the events that follow, until its turn ends or can't end any more. If the owner pauses the sandbox, a message
   * that waits, also one that is sent again, waits without end. Only the signal ends that.
   */
  async *turn(text: string, options: CallOptions = {}): AsyncGenerator<Event, void> {
    const { signal } = options;
    const after = await latestEventId(this.#connection, this.id, signal);
    const messageId = await this.send(text, options);
    for await (const event of this.events({ after, signal })) {
      yield event;
      if (endsTurn(event, messageId)) return;
    }
  }

  /** Sends a message. Returns the agent's answer when the turn has ended. Throws `turn_failed`. */
  async ask(text: string, options: CallOptions = {}): Promise<string> {
    const answer: string[] = [];
    let last: Event | null = null;
    for await (const event of this.turn(text, options)) {
      // Earlier answers belong to earlier turns.
      if (event.kind === 'turn_started') answer.length = 0;
      if (event.kind === 'message' && event.data.role === 'agent' && event.data.channel === 'answer') answer.push(event.data.text);
      last = event;
    }
    const stopReason = last?.kind === 'turn_ended' ? last.data.stop_reason : 'interrupted';
    if (!['cancelled', 'failed', 'interrupted'].includes(stopReason)) return answer.join('\n');
    const why = last?.reason ?? null;
    throw new SkepError('turn_failed', `The turn ended: ${why ?? stopReason}`, { context: { stop_reason: stopReason } });
  }

  /** Answers a permission request of the agent. */
  async answer(permissionId: string, optionId: string, options: CallOptions = {}): Promise<void> {
    const input = { ...options, path: { id: this.id, permission_id: permissionId }, body: { option_id: optionId } };
    this.state = await this.#connection.request('POST /api/v1/app-conversations/{id}/permissions/{permission_id}', input);
  }

  /** Asks the agent to stop the turn. With a message, only the turn of this message; if the agent has not got it yet, withdraws it. */
  async cancel({ messageId, ...options }: CallOptions & { readonly messageId?: string | undefined } = {}): Promise<void> {
    const input = { ...this.#input(options), body: { message_id: messageId } };
    this.state = await this.#connection.request('POST /api/v1/app-conversations/{id}/cancel', input);
  }

  /** Archives the conversation. Waits until its changes are kept; if they can't be, `status_reason` says why, and its sandbox stays. */
  async archive(options: CallOptions = {}): Promise<AppConversation> {
    const input = { ...this.#input(options), body: { archived: true } };
    // A repeated request is answered when the changes are kept, or after some seconds.
    do this.state = await this.#connection.request('PATCH /api/v1/app-conversations/{id}', input);
    while (this.state.status_reason?.code === 'keeping_changes');
    return this.state;
  }

  /** Deletes the conversation, and its sandbox if no other conversation uses it. */
  async delete(options: CallOptions = {}): Promise<void> {
    await this.#connection.request('DELETE /api/v1/app-conversations/{id}', this.#input(options));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.delete();
  }

  #input(options: CallOptions) {
    return { path: { id: this.id }, ...options };
  }
}

function endsTurn(event: Event, messageId: string): boolean {
  // A message that is put back into the queue is sent again, in another turn.
  if (event.kind === 'turn_ended') return event.data.message_id === messageId && event.status_reason?.code !== 'message_requeued';
  if (event.kind === 'start_step') return event.data.to === 'ERROR';
  if (event.kind === 'sandbox_moved') return event.data.to === null || event.data.to === 'ERROR' || event.data.to === 'MISSING';
  return event.kind === 'conversation_archived';
}
