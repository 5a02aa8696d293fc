import { type Conversation, isEnded, workingDirOf } from '../../domain/conversation.ts';
import { Refusal } from '../../domain/failure.ts';
import type { Sandbox } from '../../domain/sandbox.ts';
import { AgentRefusal } from '../../ports/agent-protocol.ts';
import type { StepDeps } from './conversation-reconciler.ts';
import { changeConversation, type ConversationChange } from './conversation-records.ts';

/**
 * Starts the conversation's agent, with its earlier session if there is one. Writes the session id together with the result of `change`. If
 * nothing is written, ends the agent. Keeps the sandbox awake meanwhile. Throws the failures of `Agents.open`, `store_unavailable`, and a
 * {@link Refusal} with the reason `agent_start_failed`.
 */
export async function openAgent(
  deps: StepDeps,
  conversation: Conversation,
  sandbox: Sandbox,
  signal: AbortSignal,
  change: (conversation: Conversation) => ConversationChange['to'] | null = () => ({}),
): Promise<void> {
  const { agents, conversationSandboxes } = deps;
  const { id, agentSessionId: before } = conversation;
  const workingDir = workingDirOf(conversation, sandbox.spec);
  using _ = conversationSandboxes.keepAwake(sandbox);
  const opening = agents.open({ conversationId: id, sandbox, workingDir, sessionId: before }, signal);
  const { session: { id: sessionId, loaded } } = await opening.catch((error: unknown) => {
    if (!(error instanceof AgentRefusal)) throw error;
    throw new Refusal({ code: 'agent_start_failed', cause: error.reason }, { cause: error });
  });
  let written: Conversation | null = null;
  try {
    written = await changeConversation(deps, id, (conversation) => {
      const to = isEnded(conversation) ? null : change(conversation);
      return to === null ? null : {
        // A new session has not received any microagent.
        to: { ...to, agentSessionId: sessionId, ...(!loaded && { microagents: withoutSettled(conversation) }) },
        actor: 'skep',
        reason: before !== null && !loaded ? { code: 'agent_session_not_found' } : null,
        events: [{ kind: 'agent_started', data: { sessionId, loaded } }],
      };
    });
  } finally {
    if (written === null) await agents.end(id);
  }
}

function withoutSettled({ microagents }: Conversation): Conversation['microagents'] {
  return microagents?.map((microagent) => ({ ...microagent, isSettled: false })) ?? null;
}
