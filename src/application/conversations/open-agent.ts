import { type Conversation, workingDirOf } from '../../domain/conversation.ts';
import type { Sandbox } from '../../domain/sandbox.ts';
import type { Changed } from './conversation-records.ts';
import type { StepDeps } from './conversation-reconciler.ts';

/**
 * Starts the conversation's agent, with its earlier session if there was one, and writes its session id together with what
 * `change` returns. If that can't be written, the agent is ended. Keeps the sandbox awake meanwhile. Failures: those of
 * `Agents.open`, `store_unavailable`.
 */
export async function openAgent(
  { agents, records, access }: StepDeps,
  conversation: Conversation,
  sandbox: Sandbox,
  signal: AbortSignal,
  change: (conversation: Conversation) => Changed['to'] | null,
): Promise<void> {
  const { id, agentSessionId: before } = conversation;
  const workingDir = workingDirOf(conversation, sandbox.spec);
  const stopKeepingAwake = access.keepAwake(sandbox);
  try {
    const { sessionId, loaded } = await agents.open({ conversationId: id, sandbox, workingDir, sessionId: before }, signal);
    let written: Conversation | null = null;
    try {
      written = await records.change(id, (conversation) => {
        const to = conversation.deletedAt === null ? change(conversation) : null;
        return to === null ? null : {
          to: { ...to, agentSessionId: sessionId },
          actor: 'skep',
          reason: before !== null && !loaded ? { code: 'agent_session_not_found' } : null,
          events: [{ kind: 'agent_started', data: { sessionId, loaded } }],
        };
      });
    } finally {
      if (written === null) await agents.end(id);
    }
  } finally {
    stopKeepingAwake();
  }
}
