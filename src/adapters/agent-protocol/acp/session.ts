import { methods, RequestError } from '@agentclientprotocol/sdk';
import { ZodError } from 'zod';
import type { Message } from '../../../domain/conversation.ts';
import type { Reason } from '../../../domain/reason.ts';
import { raceSignal } from '../../../ports/abort-signals.ts';
import type { AgentSession, AgentTurn } from '../../../ports/agent-protocol.ts';
import type { Connection } from './connection.ts';
import { failureData, knownStopReason, promptResponse } from './schema.ts';
import type { TurnListener } from './turn-listener.ts';
import { oneLine } from './updates.ts';

/** A session that is open. Its connection and its listener are its own. */
export class AcpSession implements AgentSession {
  readonly id: string;
  readonly loaded: boolean;
  readonly closed: Promise<Reason>;
  readonly #connection: Connection;
  readonly #listener: TurnListener;
  #isBusy = false;
  #isCancelled = false;

  constructor(connection: Connection, listener: TurnListener, id: string, loaded: boolean) {
    this.#connection = connection;
    this.#listener = listener;
    this.id = id;
    this.loaded = loaded;
    this.closed = connection.ended;
    listener.open(id);
  }

  async nextRequest(): Promise<number> {
    const { requests } = this.#connection;
    await Promise.race([requests.allAnswered(), this.closed]);
    return requests.nextId;
  }

  async prompt({ content }: Message): Promise<AgentTurn> {
    const prompt = content.map(({ text }) => ({ type: 'text' as const, text }));
    return await this.#inTurn(async () => {
      const request = this.#connection.agent.request(methods.agent.session.prompt, { sessionId: this.id, prompt });
      return turnOf(promptResponse.parse(await request).stopReason);
    });
  }

  async follow(over: AbortSignal): Promise<AgentTurn> {
    return await this.#inTurn(async () => {
      await raceSignal(this.closed, over).catch(() => {});
      this.#listener.end();
      await this.#listener.settled();
      const reason = this.#connection.endReason();
      return { stopReason: reason !== null ? 'interrupted' : this.#isCancelled ? 'cancelled' : 'end_turn', reason };
    });
  }

  async cancel(): Promise<void> {
    if (!this.#listener.cancel()) return;
    this.#isCancelled = true;
    // Not awaited: the agent may not read.
    this.#connection.agent.notify(methods.agent.session.cancel, { sessionId: this.id }).catch(() => {});
  }

  async close(): Promise<void> {
    this.#connection.end({ code: 'agent_session_closed' });
  }

  /** Tool calls without a result end with the turn, unless it may continue in another process, because the session was closed here. */
  async #inTurn(work: () => Promise<AgentTurn>): Promise<AgentTurn> {
    if (this.#isBusy) return { stopReason: 'failed', reason: { code: 'agent_busy' } };
    this.#isBusy = true;
    this.#isCancelled = false;
    this.#listener.begin();
    const turn = await work().catch((error: unknown) => this.#failedTurn(error));
    this.#listener.end();
    if (this.#connection.endReason()?.code !== 'agent_session_closed') await this.#listener.endCalls();
    this.#isBusy = false;
    return turn;
  }

  async #failedTurn(error: unknown): Promise<AgentTurn> {
    const reason = this.#connection.endReason();
    // Many agents answer a cancelled turn with the error that the cancellation caused.
    if (reason === null) return { stopReason: this.#isCancelled ? 'cancelled' : 'failed', reason: agentError(error) };
    await this.#listener.settled();
    return { stopReason: 'interrupted', reason };
  }
}

function turnOf(stopReason: string): AgentTurn {
  const { data: known } = knownStopReason.safeParse(stopReason);
  if (known !== undefined) return { stopReason: known, reason: null };
  return { stopReason: 'failed', reason: { code: 'agent_stop_reason_unknown', stopReason: oneLine(stopReason) } };
}

function agentError(error: unknown): AgentTurn['reason'] {
  return error instanceof ZodError ? { code: 'malformed_answer', about: 'the turn' } : { code: 'agent_error', message: messageOf(error) };
}

/** Returns the agent's error message on one line. */
export function messageOf(error: unknown): string {
  if (!(error instanceof RequestError)) return error instanceof Error ? oneLine(error.message) : '';
  const { data } = failureData.safeParse(error.data);
  const message = oneLine(error.message);
  if (data === undefined || data === '' || message.includes(oneLine(data))) return message === '' ? `error ${error.code}` : message;
  return message === '' ? oneLine(data) : `${message}: ${oneLine(data)}`;
}
