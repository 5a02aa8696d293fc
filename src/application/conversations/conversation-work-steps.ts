import { nextWorkStep, type WorkStep } from '../../domain/conversation-next-step.ts';
import { type Conversation, isEnded, type StartedTurn } from '../../domain/conversation.ts';
import { type AnyFailure, isFailure, isFailureOf, logFieldsOf, reasonOfError, reasonOfFailure } from '../../domain/failure.ts';
import { fingerprintOf } from '../../domain/fingerprint.ts';
import { isSameReason, type Reason } from '../../domain/reason.ts';
import type { Sandbox } from '../../domain/sandbox.ts';
import { AgentRefusal } from '../../ports/agent-protocol.ts';
import type { LiveAgent } from '../agents/live-agent.ts';
import type { StepDeps } from './conversation-reconciler.ts';
import { changeConversation } from './conversation-records.ts';
import { openAgent } from './open-agent.ts';
import { type EndedTurn, endTurnChange, type Interruption, interruptionOf, permissionWithdrawal } from './turns/turn-changes.ts';
import type { Turns } from './turns/turns.ts';

/** Resumes the sandbox, starts the agent, or runs a turn. Returns false if there is nothing to do now. */
export async function takeWorkStep(deps: StepDeps, turns: Turns, conversation: Conversation, signal: AbortSignal): Promise<boolean> {
  const { conversationSandboxes, agents } = deps;
  const sandbox = await conversationSandboxes.find(conversation);
  // A stop ends the agent, but if an earlier process started it, its end may be noticed only after the sandbox runs again.
  if (sandbox?.pauseKind === 'stop') await agents.end(conversation.id);
  const agent = agents.get(conversation.id);
  const step = nextWorkStep(conversation, sandbox, agent, deps.clock.now());
  switch (step.kind) {
    case 'none':
      if (conversation.queue.length > 0 || conversation.turn !== null || agent?.hasUnpromptedWork === true) {
        conversationSandboxes.addWaiting(conversation);
      }
      return false;
    case 'interrupt':
      // The agent of a cancelled turn may be frozen.
      if (agent === null && conversation.turn?.cancelled === true) await agents.end(conversation.id, sandbox);
      await interruptTurn(deps, conversation, interruptionOf(sandbox));
      return true;
    case 'withdraw-permission':
      await withdrawPermission(deps, conversation, step);
      return true;
    case 'fail':
      await failConversation(deps, conversation, step.reason);
      return true;
    case 'resume-turn':
      return await resumeTurn(deps, turns, conversation, step, signal);
    case 'resume-sandbox':
      return await resume(deps, conversation);
    case 'await-sandbox':
      return await conversationSandboxes.waitForChange(conversation, sandbox, signal);
    case 'start-agent':
      return await startAgent(deps, conversation, step.sandbox, signal);
    case 'run-turn':
      if (agent === null) return true;
      await turns.run(conversation, step.sandbox, step.message ?? unpromptedTurn(conversation, step.sandbox), agent, signal);
      return true;
  }
}

/** Returns the turn that the agent began by itself. Its id depends on the record, so no other turn has it. */
function unpromptedTurn({ id, version }: Conversation, { version: sandboxVersion }: Sandbox): StartedTurn {
  return { messageId: `msg-${fingerprintOf([id, version])}`, message: { content: [] }, sandboxVersion, unprompted: true };
}

/** Continues a turn of an earlier process. If its agent can't be reached, the next sweep tries again. */
async function resumeTurn(
  deps: StepDeps, turns: Turns, conversation: Conversation, { sandbox, turn, position }: WorkStep & { kind: 'resume-turn' },
  signal: AbortSignal,
): Promise<boolean> {
  let agent: LiveAgent;
  try {
    agent = await deps.agents.resume({ conversationId: conversation.id, sandbox }, position, signal);
  } catch (error) {
    if (signal.aborted) return true;
    if (error instanceof AgentRefusal || isFailureOf(error, 'execution_not_found')) {
      // A refused agent still runs, but nobody takes its output any more.
      await deps.agents.end(conversation.id, sandbox);
      await interruptTurn(deps, conversation);
      return true;
    }
    if (!isFailure(error)) throw error;
    deps.logger.warn({ conversation: conversation.id, ...logFieldsOf(error) }, 'a turn could not continue; the next sweep tries again');
    deps.conversationSandboxes.addWaiting(conversation);
    return false;
  }
  await turns.resume(conversation, sandbox, turn, position, agent, signal);
  return true;
}

/** Ends a turn that runs nowhere and can't continue: as cancelled if its user has cancelled it. Its message is not sent again. */
export async function interruptTurn(
  deps: StepDeps, { id }: Conversation, { actor, reason = { code: 'interrupted_by_restart' } }: Interruption = { actor: 'skep' },
): Promise<void> {
  await changeConversation(deps, id, (conversation) => {
    const { turn } = conversation;
    if (turn === null) return null;
    const cancelled: EndedTurn = { stopReason: 'cancelled', reason: null, actor: 'user', userId: turn.cancelledBy ?? null };
    return endTurnChange(conversation, turn.cancelled === true ? cancelled : { stopReason: 'interrupted', reason, actor });
  });
}

/** Withdraws a request for permission whose turn runs nowhere. The agent gets to know when it is taken over. */
async function withdrawPermission(
  deps: StepDeps, { id }: Conversation, { permission: { permissionId }, withinMs }: WorkStep & { kind: 'withdraw-permission' },
): Promise<void> {
  await changeConversation(deps, id, ({ permission }) =>
    permission?.permissionId === permissionId ? permissionWithdrawal(permission, { code: 'permission_unanswered', withinMs }) : null);
}

/** Ends the conversation's work because its sandbox is lost: the turn if there is one, and the messages of the queue. */
async function failConversation(deps: StepDeps, { id }: Conversation, loss: Reason): Promise<void> {
  await deps.agents.end(id);
  await changeConversation(deps, id, (conversation) => {
    if (isEnded(conversation)) return null;
    const { length: count } = conversation.queue;
    const reason: Reason = count === 0 ? loss : { code: 'messages_dropped', count, cause: loss };
    return endTurnChange(conversation, { stopReason: 'interrupted', reason, actor: 'skep' }, { queue: [] });
  });
}

/** Resumes the sandbox for the queue. If that fails, it is tried again when the sandbox changes, and at the next sweep. */
async function resume(deps: StepDeps, conversation: Conversation): Promise<boolean> {
  try {
    await deps.conversationSandboxes.resume(conversation);
    return true;
  } catch (error) {
    if (!isFailure(error) || isFailureOf(error, 'store_unavailable')) throw error;
    await waitWithReason(deps, conversation, error);
    return false;
  }
}

async function startAgent(deps: StepDeps, conversation: Conversation, sandbox: Sandbox, signal: AbortSignal): Promise<boolean> {
  try {
    await openAgent(deps, conversation, sandbox, signal);
    return true;
  } catch (error) {
    if (signal.aborted) return true;
    if (isFailureOf(error, 'store_unavailable')) throw error;
    if (isFailure(error)) {
      await waitWithReason(deps, conversation, error);
      return false;
    }
    // If the sandbox was paused meanwhile, its next run starts the agent.
    if (await deps.conversationSandboxes.hasChanged(conversation, sandbox)) return true;
    const reason = reasonOfError(error);
    if (reason === null) deps.logger.error({ conversation: conversation.id, error }, 'an agent could not be started');
    await failTurn(deps, conversation, reason ?? { code: 'agent_start_failed', cause: { code: 'internal_error' } });
    return true;
  }
}

/** Ends the turn of the next message before it begins, because the agent can't get the message. */
async function failTurn(deps: StepDeps, { id }: Conversation, reason: Reason): Promise<void> {
  await changeConversation(deps, id, (conversation) => {
    const { turn, queue: [next, ...queue] } = conversation;
    if (isEnded(conversation) || turn !== null || next === undefined) return null;
    const ended = endTurnChange({ ...conversation, turn: next }, { stopReason: 'failed', reason, actor: 'skep' }, { queue });
    const started = { kind: 'turn_started', data: { messageId: next.messageId } } as const;
    return { ...ended, events: [started, ...(ended.events ?? [])] };
  });
}

/** Lets the message wait until the sandbox changes, or for the next sweep. Writes why. */
async function waitWithReason(deps: StepDeps, conversation: Conversation, failure: AnyFailure): Promise<void> {
  deps.conversationSandboxes.addWaiting(conversation);
  const reason: Reason = { code: 'message_waiting', cause: reasonOfFailure(failure) };
  await changeConversation(deps, conversation.id, (now) =>
    isEnded(now) || isSameReason(now.statusReason, reason)
      ? null
      : { to: { statusReason: reason }, actor: 'skep', reason: null },
  );
}
