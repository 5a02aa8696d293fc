import type { AgentClient, AgentPermission, AgentUpdate } from '../../../ports/agent-protocol.ts';
import { permissionRequest, sessionUpdate, type WirePermission } from './schema.ts';
import { plain } from './text.ts';
import { ToolCalls } from './tool-calls.ts';
import { updateOf } from './updates.ts';

/** The client has failed to take an update. */
export class NotTaken extends Error {}

/**
 * Hands what the agent says and asks to the client while a turn is under way. What comes between turns, the replay of a
 * loaded session for one, belongs to none and is passed over.
 */
export class Listener {
  readonly #client: AgentClient;
  readonly #calls = new ToolCalls();
  #sessionId = '';
  /** Aborted when the turn is cancelled or over. */
  #turn: AbortController | null = null;
  #taking: Promise<void> = Promise.resolve();

  constructor(client: AgentClient) {
    this.#client = client;
  }

  begin(sessionId: string): void {
    this.#sessionId = sessionId;
    this.#turn = new AbortController();
  }

  /** Withdraws what the agent asks leave for. Answers false when there is nothing to cancel, or it is cancelled already. */
  cancel(): boolean {
    if (this.#turn === null || this.#turn.signal.aborted) return false;
    this.#turn.abort();
    return true;
  }

  end(): void {
    this.cancel();
    this.#turn = null;
    this.#calls.clear();
  }

  /** Answers when the client has taken what it was last given. */
  async settled(): Promise<void> {
    await this.#taking.catch(() => {});
  }

  /** Answers with whether it was an update; rejects where the client does not take it. */
  async update(params: unknown): Promise<boolean> {
    if (this.#turn === null) return true;
    const parsed = sessionUpdate.safeParse(params);
    if (!parsed.success) return false;
    const { sessionId, update } = parsed.data;
    if (update !== 'other' && sessionId === this.#sessionId) await this.#take(updateOf(update, this.#calls));
    return true;
  }

  /** The call that the agent asks leave for, as an update: the request may be the first, or the only one, to show what it is to do. */
  async announce(params: unknown): Promise<void> {
    const { data } = permissionRequest.safeParse(params);
    if (this.#turn === null || data === undefined) return;
    const before = this.#calls.get(data.toolCall.toolCallId);
    const call = this.#calls.merge(data.toolCall);
    if (JSON.stringify(call) !== JSON.stringify(before)) await this.#take({ kind: 'tool_call', call });
  }

  /** The option that was chosen; null where the request is withdrawn, or nobody can answer it. */
  async permission({ toolCall: { toolCallId }, options }: WirePermission, withdrawn: AbortSignal): Promise<string | null> {
    const turn = this.#turn;
    if (turn === null) return null;
    const signal = AbortSignal.any([turn.signal, withdrawn]);
    if (signal.aborted) return null;
    const request: AgentPermission = {
      toolCallId,
      title: this.#calls.get(toolCallId)?.title ?? toolCallId,
      options: options.map((option) => ({ ...option, name: plain(option.name) })),
    };
    const { promise: aborted, resolve } = Promise.withResolvers<null>();
    signal.addEventListener('abort', () => resolve(null), { once: true });
    return await Promise.race([this.#client.permission(request, signal).catch(() => null), aborted]);
  }

  async #take(update: AgentUpdate | null): Promise<void> {
    if (update === null) return;
    this.#taking = this.#client.update(update);
    try {
      await this.#taking;
    } catch (cause) {
      throw new NotTaken('an update was not taken', { cause });
    }
  }
}
