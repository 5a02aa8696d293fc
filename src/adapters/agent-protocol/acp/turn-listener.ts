import type { AgentClient, AgentPermission, AgentUpdate } from '../../../ports/agent-protocol.ts';
import { raceSignal } from '../../shared/timeout.ts';
import { ConnectionFailure } from './connection.ts';
import { permissionRequest, sessionUpdate, type WirePermission } from './schema.ts';
import { createToolCalls, mergeToolCall, oneLine, updateOf } from './updates.ts';

/** Passes updates and permission requests to the client while a turn runs. Drops all others, such as the replay of a loaded session. */
export class TurnListener {
  readonly #client: AgentClient;
  #calls = createToolCalls();
  #sessionId = '';
  /** Aborted when the turn is cancelled or over. */
  #turn: AbortController | null = null;
  #forwarding: Promise<void> = Promise.resolve();

  constructor(client: AgentClient) {
    this.#client = client;
  }

  begin(sessionId: string): void {
    this.#sessionId = sessionId;
    this.#turn = new AbortController();
  }

  /** Withdraws open permission requests. Returns false if no turn runs, or it is already cancelled. */
  cancel(): boolean {
    if (this.#turn === null || this.#turn.signal.aborted) return false;
    this.#turn.abort();
    return true;
  }

  end(): void {
    this.cancel();
    this.#turn = null;
    this.#calls = createToolCalls();
  }

  /** Resolves when the client has handled the last update. */
  async settled(): Promise<void> {
    await this.#forwarding.catch(() => {});
  }

  /** Returns false if `params` is not a valid update. Rejects if the client fails to handle it. */
  async update(params: unknown): Promise<boolean> {
    if (this.#turn === null) return true;
    const parsed = sessionUpdate.safeParse(params);
    if (!parsed.success) return false;
    const { sessionId, update } = parsed.data;
    if (update !== 'other' && sessionId === this.#sessionId) await this.#forward(updateOf(update, this.#calls));
    return true;
  }

  /** Reports the tool call of a permission request as an update, because the request may be the first message about it. */
  async announce(params: unknown): Promise<void> {
    const { data } = permissionRequest.safeParse(params);
    if (this.#turn === null || data === undefined) return;
    const before = this.#calls.get(data.toolCall.toolCallId);
    const call = mergeToolCall(this.#calls, data.toolCall);
    if (JSON.stringify(call) !== JSON.stringify(before)) await this.#forward({ kind: 'tool_call', call });
  }

  /** Resolves to the chosen option; null if the request is withdrawn, or nobody can answer it. */
  async permission({ toolCall: { toolCallId }, options }: WirePermission, withdrawn: AbortSignal): Promise<string | null> {
    const turn = this.#turn;
    if (turn === null) return null;
    const signal = AbortSignal.any([turn.signal, withdrawn]);
    if (signal.aborted) return null;
    const request: AgentPermission = {
      toolCallId,
      title: this.#calls.get(toolCallId)?.title ?? toolCallId,
      options: options.map((option) => ({ ...option, name: oneLine(option.name) })),
    };
    return await raceSignal(this.#client.permission(request, signal), signal).catch(() => null);
  }

  async #forward(update: AgentUpdate | null): Promise<void> {
    if (update === null) return;
    this.#forwarding = this.#client.update(update);
    try {
      await this.#forwarding;
    } catch (cause) {
      throw new ConnectionFailure({ code: 'agent_output_not_stored' }, { cause });
    }
  }
}
