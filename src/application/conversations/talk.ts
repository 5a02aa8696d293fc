import { sandboxLoss } from '../../domain/conversation-next-step.ts';
import { type Conversation, type QueuedMessage, queueRefusal } from '../../domain/conversation.ts';
import { messageBody } from '../../domain/event.ts';
import { Failure } from '../../domain/failure.ts';
import type { SandboxSpec } from '../../domain/sandbox-spec.ts';
import type { Sandbox } from '../../domain/sandbox.ts';
import type { Change } from './records.ts';

export function noSuchConversation(id: string): Failure {
  return new Failure('conversation_not_found', { id });
}

/** Takes the message in. `spec` is that of the sandbox where there is none yet. */
export function sending(ownerId: string, id: string, queued: QueuedMessage, sandbox: Sandbox | null, spec: SandboxSpec | null): Change {
  return (conversation) => {
    if (conversation.ownerId !== ownerId || conversation.deletedAt !== null) throw noSuchConversation(id);
    const reason = refusal(conversation, queued, sandbox, spec);
    if (reason !== null) throw new Failure('conversation_not_ready', { id, reason });
    return { to: { queue: [...conversation.queue, queued] }, actor: 'user', reason: null, events: [messageBody(queued)] };
  };
}

/** Writes down what the owner chose. */
export function answering(ownerId: string, id: string, permissionId: string, optionId: string): Change {
  return ({ ownerId: owner, deletedAt, permission }) => {
    if (owner !== ownerId || deletedAt !== null) throw noSuchConversation(id);
    if (permission?.permissionId !== permissionId) throw new Failure('permission_not_found', { id: permissionId });
    const offered = permission.options.map((option) => option.optionId);
    if (!offered.includes(optionId)) {
      const message = `must be one of the options that the agent offers: ${offered.join(', ')}`;
      throw new Failure('invalid_request', { problems: [{ argument: 'optionId', code: 'unknown_option', message }] });
    }
    return {
      to: { permission: null, executionStatus: 'running' },
      actor: 'user',
      reason: null,
      events: [{ kind: 'permission_answered', data: { permissionId, optionId } }],
    };
  };
}

function refusal(conversation: Conversation, { message }: QueuedMessage, sandbox: Sandbox | null, spec: SandboxSpec | null): string | null {
  const { startStatus, statusDetail, executionStatus } = conversation;
  if (startStatus === 'ERROR') return `its start has failed (${statusDetail ?? 'no reason is known'})`;
  const starting = startStatus !== 'READY';
  // While it starts, its sandbox may not be written down yet.
  const present = sandbox?.deletedAt === null ? sandbox : null;
  const loss = present === null && starting ? null : sandboxLoss(present);
  if (loss !== null) return loss;
  const agent = starting ? ((present?.spec ?? spec)?.agent ?? null) : executionStatus;
  return agent === null ? 'its sandbox spec names no agent' : queueRefusal(conversation, message);
}
