import { isOpenCall, type ToolCall } from '../../../domain/agent.ts';
import { raceSignal } from '../../../ports/abort-signals.ts';
import type { AgentClient, AgentPermission, AgentUpdate } from '../../../ports/agent-protocol.ts';
import { realTimers, sleep } from '../../shared/timeout.ts';
import { ConnectionFailure } from './connection.ts';
import { sessionUpdate, type WirePermission } from './schema.ts';
import { createToolCalls, mergeToolCall, updateOf } from './updates.ts';

/** How long no update of a replay must come, and how long a replay may take. */
const quietMs = 500;
const maxReplayMs = 30_000;

/** The updates that show that the agent works. Others also come between turns: commands, costs, and the results of cancelled calls. */
const workKinds: ReadonlySet<string> = new Set(['agent_message_chunk', 'agent_thought_chunk', 'tool_call']);

/**
 * `opening`: all updates are dropped, because they are the replay of a loaded session.
 * `idle`: work of the agent waits for the next turn, and nothing more is read. Other updates are dropped.
 * `turn`: updates and permission requests go to the client. The signal fires when the turn is cancelled or over.
 * `closed`: the connection has ended. What is still in memory is dropped.
 */
type State =
  | { readonly kind: 'opening' | 'closed' }
  | { readonly kind: 'idle'; readonly nextTurn: PromiseWithResolvers<void> }
  | { readonly kind: 'turn'; readonly over: AbortController };

/** Decides which updates and permission requests go to the client, and which wait for a turn. */
export class TurnListener {
  readonly #client: AgentClient;
  #calls = createToolCalls();
  /** The calls that had no result when the turn ended. */
  #unfinished: readonly ToolCall[] = [];
  #sessionId = '';
  #state: State = { kind: 'opening' };
  /** True if the last update was a part of a message. */
  #isSaying = false;
  #forwarding: Promise<void> = Promise.resolve();
  /** How many updates have come, also those that were dropped. */
  #received = 0;

  constructor(client: AgentClient) {
    this.#client = client;
  }

  /** From now on, turns may begin. */
  open(sessionId: string): void {
    this.#sessionId = sessionId;
    if (this.#state.kind === 'opening') this.#state = idle();
  }

  begin(): void {
    const before = this.#state;
    this.#unfinished = [];
    if (before.kind === 'closed') return;
    this.#state = { kind: 'turn', over: new AbortController() };
    if (before.kind === 'idle') before.nextTurn.resolve();
  }

  /**
   * Resolves when the agent has sent no update for a while. Some agents (Gemini CLI) return from `session/load` before they have replayed
   * the history, against the protocol. Nothing marks the end of such a replay, and the rest of it would become output of the next turn.
   */
  async replayed(signal: AbortSignal): Promise<void> {
    for (let waitedMs = 0; waitedMs < maxReplayMs; waitedMs += quietMs) {
      const before = this.#received;
      await sleep(realTimers, quietMs, signal);
      if (this.#received === before) return;
    }
  }

  /** Withdraws open permission requests. Returns false if no turn runs, or it is already cancelled. */
  cancel(): boolean {
    if (this.#state.kind !== 'turn' || this.#state.over.signal.aborted) return false;
    this.#state.over.abort();
    return true;
  }

  /** Called when the turn ends, before any later output is handled. Does nothing between turns. */
  end(): void {
    if (this.#state.kind !== 'turn') return;
    this.cancel();
    this.#unfinished = [...this.#calls.values()].map(({ call }) => call).filter(isOpenCall);
    this.#calls = createToolCalls();
    this.#state = idle();
  }

  close(): void {
    this.end();
    const before = this.#state;
    this.#state = { kind: 'closed' };
    if (before.kind === 'idle') before.nextTurn.resolve();
  }

  /** Reports the tool calls that have no result as failed, because the turn has ended and none will come. */
  async endCalls(): Promise<void> {
    // If the client can't handle an update, it knows that when the turn ends.
    if (this.#unfinished.length > 0) await this.#endMessage().catch(() => {});
    for (const call of this.#unfinished) await this.#forward({ kind: 'tool_call', call: { ...call, status: 'failed' } }).catch(() => {});
  }

  /** Resolves when the client has handled the last update. */
  async settled(): Promise<void> {
    await this.#forwarding.catch(() => {});
  }

  /** Returns false if `params` is not a valid update. Rejects if the client fails to handle it. */
  async update(params: unknown): Promise<boolean> {
    this.#received += 1;
    if (this.#state.kind === 'opening' || this.#state.kind === 'closed') return true;
    const parsed = sessionUpdate.safeParse(params);
    if (!parsed.success) return false;
    const { sessionId, update } = parsed.data;
    if (update === 'other' || sessionId !== this.#sessionId) return true;
    if (workKinds.has(update.sessionUpdate)) await this.#turnBegins();
    if (this.#state.kind === 'turn') await this.#forward(updateOf(update, this.#calls));
    return true;
  }

  /**
   * Reports the end of the message before a permission request, and its tool call as an update, because the request may be the first
   * message about it.
   */
  async announce({ toolCall }: WirePermission): Promise<void> {
    await this.#turnBegins();
    if (this.#state.kind !== 'turn') return;
    await this.#endMessage();
    const before = this.#calls.get(toolCall.toolCallId)?.call;
    const call = mergeToolCall(this.#calls, toolCall);
    if (JSON.stringify(call) !== JSON.stringify(before)) await this.#forward({ kind: 'tool_call', call });
  }

  /** Resolves to the chosen option; null if the request is withdrawn, or nobody can answer it. */
  async permission({ toolCall: { toolCallId }, options }: WirePermission, withdrawn: AbortSignal): Promise<string | null> {
    if (this.#state.kind !== 'turn') return null;
    const signal = AbortSignal.any([this.#state.over.signal, withdrawn]);
    if (signal.aborted) return null;
    const request: AgentPermission = { toolCallId, title: this.#calls.get(toolCallId)?.call.title ?? toolCallId, options };
    return await raceSignal(this.#client.permission(request, signal), signal).catch(() => null);
  }

  async #endMessage(): Promise<void> {
    if (this.#isSaying) await this.#forward({ kind: 'message_end' });
  }

  /** Between turns, reports work of the agent and waits for the next turn. */
  async #turnBegins(): Promise<void> {
    if (this.#state.kind !== 'idle') return;
    this.#client.onUnpromptedWork();
    await this.#state.nextTurn.promise;
  }

  async #forward(update: AgentUpdate | null): Promise<void> {
    if (update === null) return;
    this.#isSaying = update.kind === 'message_chunk';
    this.#forwarding = this.#client.update(update);
    try {
      await this.#forwarding;
    } catch (cause) {
      throw new ConnectionFailure({ code: 'agent_output_not_stored' }, { cause });
    }
  }
}

function idle(): State {
  return { kind: 'idle', nextTurn: Promise.withResolvers() };
}
