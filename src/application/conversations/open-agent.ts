import { type Conversation, isEnded, workingDirOf } from '../../domain/conversation.ts';
import type { Sandbox } from '../../domain/sandbox.ts';
import type { StepDeps } from './conversation-reconciler.ts';
import { changeConversation, type ConversationChange } from './conversation-records.ts';

/**
 * Starts the conversation's agent, with its earlier session if there is one. Writes the session id together with the result of `change`. If
 * nothing is written, ends the agent. Keeps the sandbox awake meanwhile. Throws as `Agents.open` does, and `store_unavailable`.
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
  const { session: { id: sessionId, loaded } } = await agents.open({ conversationId: id, sandbox, workingDir, sessionId: before }, signal);
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
