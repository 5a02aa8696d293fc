import { type Conversation, workingDirOf } from '../../domain/conversation.ts';
import type { Sandbox } from '../../domain/sandbox.ts';
import type { Agents } from '../agents/agents.ts';
import type { Changed, ConversationRecords } from './conversation-records.ts';

/**
 * Starts the conversation's agent with the session that it had, if it had one, and writes down which session it has now,
 * together with what else that changes. Where it can't be written down, the agent does not go on. Failures: those of
 * {@link Agents.open}, `store_unavailable`.
 */
export async function openAgent(
  agents: Agents,
  records: ConversationRecords,
  conversation: Conversation,
  sandbox: Sandbox,
  signal: AbortSignal,
  change: (conversation: Conversation) => Changed['to'] | null,
): Promise<void> {
  const { id, agentSessionId: before } = conversation;
  const workingDir = workingDirOf(conversation, sandbox.spec);
  const { sessionId, loaded } = await agents.open({ conversationId: id, sandbox, workingDir, sessionId: before }, signal);
  const lost = before !== null && !loaded;
  let written: Conversation | null = null;
  try {
    written = await records.change(id, (conversation) => {
      const to = conversation.deletedAt === null ? change(conversation) : null;
      return to === null ? null : {
        to: { ...to, agentSessionId: sessionId },
        actor: 'skep',
        reason: lost ? 'its earlier session could not be loaded: it starts anew, and knows nothing of what was said before' : null,
        events: [{ kind: 'agent_started', data: { sessionId, loaded } }],
      };
    });
  } finally {
    if (written === null) await agents.end(id);
  }
}
