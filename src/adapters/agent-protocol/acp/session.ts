import { methods, RequestError } from '@agentclientprotocol/sdk';
import { ZodError } from 'zod';
import type { AgentSession, AgentTurn } from '../../../ports/agent-protocol.ts';
import type { Connection } from './connection.ts';
import type { TurnListener } from './turn-listener.ts';
import { failureData, knownStopReason, promptResponse } from './schema.ts';
import { oneLine } from './updates.ts';

export function createSession(
  { agent, requests, endReason, ended, end }: Connection, listener: TurnListener, id: string, loaded: boolean,
): AgentSession {
  let busy = false;
  let cancelled = false;

  return {
    id,
    loaded,
    closed: ended,
    async nextRequest() {
      await Promise.race([requests.allAnswered(), ended]);
      return requests.nextId;
    },
    async prompt({ content }) {
      if (busy) return { stopReason: 'failed', reason: { code: 'agent_busy' } };
      busy = true;
      cancelled = false;
      listener.begin(id);
      try {
        const prompt = content.map(({ text }) => ({ type: 'text' as const, text }));
        return turnOf(promptResponse.parse(await agent.request(methods.agent.session.prompt, { sessionId: id, prompt })).stopReason);
      } catch (error) {
        // Many agents answer a cancelled turn with the error that the cancellation caused.
        if (endReason() === null) return { stopReason: cancelled ? 'cancelled' : 'failed', reason: agentError(error) };
        await listener.settled();
        return { stopReason: 'interrupted', reason: endReason() };
      } finally {
        listener.end();
        busy = false;
      }
    },
    async cancel() {
      if (!listener.cancel()) return;
      cancelled = true;
      // Not awaited: the agent may not read.
      agent.notify(methods.agent.session.cancel, { sessionId: id }).catch(() => {});
    },
    async close() {
      end({ code: 'agent_session_closed' });
    },
  };
}

function turnOf(stopReason: string): AgentTurn {
  const { data: known } = knownStopReason.safeParse(stopReason);
  if (known !== undefined) return { stopReason: known, reason: null };
  return { stopReason: 'failed', reason: { code: 'agent_stop_reason_unknown', stopReason: oneLine(stopReason) } };
}

function agentError(error: unknown): AgentTurn['reason'] {
  return error instanceof ZodError ? { code: 'malformed_answer', about: 'the turn' } : { code: 'agent_error', message: messageOf(error) };
}

const authRequired = -32_000;

export function isAuthenticationRequired(error: unknown): boolean {
  return error instanceof RequestError && error.code === authRequired;
}

/** Returns the agent's error message on one line. */
export function messageOf(error: unknown): string {
  if (!(error instanceof RequestError)) return error instanceof Error ? oneLine(error.message) : '';
  const { data } = failureData.safeParse(error.data);
  const message = oneLine(error.message);
  if (data === undefined || data === '' || message.includes(oneLine(data))) return message === '' ? `error ${error.code}` : message;
  return message === '' ? oneLine(data) : `${message}: ${oneLine(data)}`;
}
