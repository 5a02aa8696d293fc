import { commandName } from '../../client/command-name.ts';
import type { api, Conversation, SkepClient } from '../../client/index.ts';
import { incomplete, patchLines, publishChanges } from './changes.ts';
import { CommandError, followOptions, textOfError } from './console.ts';
import { safeLine } from './safe-text.ts';
import { afterEvent, type ChatState, exitCodeOf, firstState, hasOpenTurn, withMessage, withTurnsEnded } from './chat-state.ts';
import { Terminal, type TerminalOptions } from './chat-terminal.ts';
import { EventPrinter, type Screen } from './event-printer.ts';

const help = 'Each line is a message. /cancel stops the turn, /pause pauses the sandbox, /diff shows the changes, '
  + '/publish pushes them to a branch, /publish TITLE opens or updates a pull request for it too, /quit leaves; '
  + 'the conversation stays open.';

/** Ends when every message is answered, or when the person leaves. The exit code is 1 if a start, a turn or a message failed. */
export class Chat {
  readonly #client: SkepClient;
  readonly #conversation: Conversation;
  readonly #terminal: Terminal;
  readonly #printer: EventPrinter;
  readonly #leaving = new AbortController();
  /** Messages that a person typed. They are on the screen already. */
  readonly #typedMessages: string[] = [];
  #state = firstState;
  #input: Promise<void> = Promise.resolve();
  #nextEvent = Promise.withResolvers<void>();
  #code: number | null = null;

  constructor(client: SkepClient, conversation: Conversation, options: TerminalOptions & Omit<Screen, 'write'>) {
    this.#client = client;
    this.#conversation = conversation;
    this.#terminal = new Terminal(options, {
      line: (line) => this.#handleLine(line.trim()),
      end: () => this.#endInput(),
      interrupt: () => this.#interrupt(),
    });
    this.#printer = new EventPrinter({ ...options, write: (text) => this.#terminal.write(text) });
  }

  /** Sends the message first. `showsEarlier`: whether events from before this chat are shown. Returns the exit code. */
  async run(message: string | null, showsEarlier = true): Promise<number> {
    const { signal } = this.#leaving;
    const earlierEvents = Promise.withResolvers<void>();
    // The earlier events show whether the first line answers a permission.
    this.#enqueue(() => earlierEvents.promise);
    try {
      if (this.#terminal.interactive) this.#printer.line(help);
      if (message !== null) this.#enqueue(() => this.#send(message));
      let last = 0;
      for await (const event of this.#client.items('GET /api/v1/app-conversations/{id}/events', { path: { id: this.#conversation.id } })) {
        last = event.id;
        await this.#handleEvent(event, showsEarlier);
      }
      this.#update({ phase: 'starting' });
      await this.#readConversation();
      earlierEvents.resolve();
      const events = this.#conversation.events({ after: last, ...followOptions(signal, (text) => this.#printer.line(text)) });
      for await (const event of events) await this.#handleEvent(event);
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      this.#leaving.abort();
      this.#terminal.close();
    }
    return this.#code ?? Number(this.#state.hasFailed);
  }

  /** Leaves if the new state says so. After that, nothing changes. */
  #update(change: Partial<ChatState>): void {
    if (this.#hasLeft) return;
    this.#state = { ...this.#state, ...change };
    this.#code = exitCodeOf(this.#state);
    if (this.#code === null) return;
    const { id } = this.#conversation;
    if (this.#terminal.interactive) this.#printer.line(`Continue this conversation with ${commandName} chat --conversation ${id}`);
    this.#leaving.abort();
  }

  get #hasLeft(): boolean {
    return this.#leaving.signal.aborted;
  }

  async #handleEvent(event: api.Event, isShown = true): Promise<void> {
    // Not only the first one: a message that was refused has no event.
    const typed = event.kind === 'message' && event.data.role === 'user' ? this.#typedMessages.indexOf(event.data.text) : -1;
    if (typed !== -1) this.#typedMessages.splice(typed, 1);
    else if (isShown) this.#printer.show(event);
    this.#update(afterEvent(this.#state, event));
    if (event.kind === 'permission_requested') this.#enqueue(() => this.#leaveIfNobodyCanAnswer());
    const hasStartEnded = event.kind === 'start_step' && (event.data.to === 'READY' || event.data.to === 'ERROR');
    if (hasStartEnded && this.#state.phase !== 'history') await this.#readConversation();
    this.#nextEvent.resolve();
    this.#nextEvent = Promise.withResolvers();
  }

  /** Finds out whether the conversation has an agent to talk with. */
  async #readConversation(): Promise<void> {
    const { start_status, execution_status } = await this.#conversation.refresh();
    if (start_status === 'ERROR') return this.#update({ phase: 'over' });
    if (start_status !== 'READY' || this.#hasLeft) return;
    if (execution_status === null) {
      this.#printer.line('The spec of this conversation names no agent. Start a new conversation with --spec.');
      return this.#update({ phase: 'over' });
    }
    this.#update({ phase: 'ready' });
    this.#terminal.showPrompt();
  }

  #handleLine(line: string): void {
    if (line === '') return;
    if (line === '/quit') this.#enqueue(async () => this.#update({ input: 'left' }));
    else if (line === '/cancel') this.#enqueue(() => this.#conversation.cancel());
    else if (line === '/pause') this.#enqueue(() => this.#pause());
    else if (line === '/diff') this.#enqueue(() => this.#diff());
    else if (line === '/publish' || line.startsWith('/publish ')) this.#enqueue(() => this.#publish(line.slice('/publish'.length).trim()));
    else if (line === '/help') this.#printer.line(help);
    // The agent may have commands of its own.
    else this.#enqueue(() => this.#sendOrAnswer(line));
  }

  /** Runs the work after all earlier work, so input takes effect in the order in which it was typed. */
  #enqueue(work: () => Promise<void>): void {
    this.#update({ pendingWork: this.#state.pendingWork + 1 });
    this.#input = this.#input.then(() => this.#run(work));
  }

  async #run(work: () => Promise<void>): Promise<void> {
    try {
      if (!this.#hasLeft) await work();
    } catch (error) {
      if (this.#hasLeft) return;
      this.#printer.line(textOfError(error));
      this.#update({ hasFailed: true });
    }
    this.#update({ pendingWork: this.#state.pendingWork - 1 });
  }

  async #sendOrAnswer(line: string): Promise<void> {
    const { permission } = this.#state;
    if (permission !== null) return await this.#answer(permission, line);
    if (this.#terminal.interactive) this.#typedMessages.push(line);
    await this.#send(line);
  }

  async #send(text: string): Promise<void> {
    const id = await this.#conversation.send(text);
    this.#update(withMessage(this.#state, id));
  }

  async #answer({ permission_id, options }: api.PermissionRequestedEventData, line: string): Promise<void> {
    const option = /^\d+$/.test(line) ? options[Number(line) - 1] : undefined;
    if (option === undefined) return this.#printer.line(`Answer with a number from 1 to ${options.length}.`);
    await this.#conversation.answer(permission_id, option.option_id);
    if (this.#state.permission?.permission_id === permission_id) this.#update({ permission: null });
  }

  /** In a pipe, a command waits for the turns before it. If the agent needs an answer, that may be in a later line. */
  async #untilTurnsEnd(): Promise<void> {
    while (!this.#terminal.interactive && hasOpenTurn(this.#state)) {
      const { promise } = this.#nextEvent;
      if (await this.#needsAnswer()) return;
      await promise;
    }
  }

  async #pause(): Promise<void> {
    await this.#untilTurnsEnd();
    const { sandbox_id } = await this.#conversation.refresh();
    await this.#client.request('POST /api/v1/sandboxes/{id}/pause', { path: { id: sandbox_id ?? '' }, body: {} });
  }

  async #publish(title: string): Promise<void> {
    await this.#untilTurnsEnd();
    const isWaiting = !this.#terminal.interactive && hasOpenTurn(this.#state);
    if (isWaiting) throw new CommandError('Nothing is published while the agent waits for a permission. Answer it first.');
    const wanted = title === '' ? {} : { pull_request: { title } };
    const { branch, commit, complete, pull_request: opened } = await publishChanges(this.#client, this.#conversation.id, wanted);
    this.#printer.line(`Pushed ${commit.slice(0, 10)} to ${branch}.`);
    if (!complete) this.#printer.line(incomplete);
    if (opened !== null) this.#printer.line(`Its pull request: ${safeLine(opened.url)}`);
  }

  async #diff(): Promise<void> {
    await this.#untilTurnsEnd();
    for await (const lines of patchLines(this.#client, this.#conversation.id, this.#leaving.signal)) this.#terminal.write(lines);
  }

  #endInput(): void {
    if (this.#hasLeft) return;
    this.#enqueue(() => this.#leaveIfNobodyCanAnswer());
    this.#update({ input: 'ended' });
  }

  /** The first Control-C stops the turn, if there is one. The next leaves. */
  #interrupt(): void {
    if (!hasOpenTurn(this.#state)) return this.#update({ input: 'left' });
    this.#printer.line('Stopping the turn. Press again to leave.');
    this.#enqueue(() => this.#conversation.cancel());
    this.#update(withTurnsEnded(this.#state));
  }

  /** Returns true if the agent waits for a permission that the conversation's policy does not answer. */
  async #needsAnswer(): Promise<boolean> {
    return this.#state.permission !== null && (await this.#conversation.refresh()).execution_status === 'waiting_for_permission';
  }

  /** Leaves if nobody can type the answer that the agent waits for. */
  async #leaveIfNobodyCanAnswer(): Promise<void> {
    if (this.#state.input !== 'ended' || !(await this.#needsAnswer())) return;
    const advice = `${commandName} chat --conversation ${this.#conversation.id}, or start with --permissions allow or deny.`;
    this.#printer.line(`The agent waits for a permission, but the input has ended. Answer with ${advice}`);
    this.#update({ phase: 'over' });
  }
}
