import type { Conversation, ConversationStartStatus } from './conversation.ts';
import type { Sandbox } from './sandbox.ts';

/** From each start status, those that may follow; what does not apply to a conversation is skipped. */
export const startSteps: Readonly<Record<ConversationStartStatus, readonly ConversationStartStatus[]>> = {
  WORKING: ['WAITING_FOR_SANDBOX', 'ERROR'],
  WAITING_FOR_SANDBOX: ['PREPARING_REPOSITORY', 'STARTING_AGENT', 'READY', 'ERROR'],
  PREPARING_REPOSITORY: ['LISTING_MICROAGENTS', 'ERROR'],
  LISTING_MICROAGENTS: ['STARTING_AGENT', 'READY', 'ERROR'],
  STARTING_AGENT: ['READY', 'ERROR'],
  READY: [],
  ERROR: [],
};

/** Is its start, its work or its end under way? What waits in a queue is work only where there is an agent for it. */
export function isUnsettled(conversation: Conversation): boolean {
  const { startStatus, turn, queue, executionStatus, deletedAt, removedAt } = conversation;
  if (deletedAt !== null) return removedAt === null;
  if (startSteps[startStatus].length > 0 || turn !== null) return true;
  return startStatus === 'READY' && executionStatus !== null && queue.length > 0;
}

/** What to do next for the start of a conversation. `sandbox` is null where there is none, or a deleted one. */
export type StartStep =
  | { readonly kind: 'none' }
  | { readonly kind: 'start-sandbox' }
  | { readonly kind: 'resume-sandbox' }
  | { readonly kind: 'await-sandbox' }
  | { readonly kind: 'prepare-repository'; readonly sandbox: Sandbox; readonly repository: string }
  | { readonly kind: 'list-microagents'; readonly sandbox: Sandbox; readonly repository: string }
  | { readonly kind: 'start-agent'; readonly sandbox: Sandbox }
  | { readonly kind: 'record'; readonly status: ConversationStartStatus; readonly detail: string | null };

export function nextStartStep(conversation: Conversation, sandbox: Sandbox | null): StartStep {
  const { startStatus, startsSandbox } = conversation;
  switch (startStatus) {
    case 'READY':
    case 'ERROR':
      return { kind: 'none' };
    case 'WORKING':
      if (sandbox !== null) return { kind: 'record', status: 'WAITING_FOR_SANDBOX', detail: null };
      return startsSandbox ? { kind: 'start-sandbox' } : failed('its sandbox was deleted');
    case 'WAITING_FOR_SANDBOX':
    case 'PREPARING_REPOSITORY':
    case 'LISTING_MICROAGENTS':
    case 'STARTING_AGENT':
      return sandbox === null ? failed(`${startStatus}: its sandbox was deleted`) : inSandbox(conversation, startStatus, sandbox);
  }
}

/** The status that follows once what the present one stands for is done. */
export function statusAfter(
  { startStatus, selectedRepository }: Pick<Conversation, 'startStatus' | 'selectedRepository'>,
  { spec }: Pick<Sandbox, 'spec'>,
): ConversationStartStatus {
  if (startStatus === 'WAITING_FOR_SANDBOX' && selectedRepository !== null) return 'PREPARING_REPOSITORY';
  if (startStatus === 'PREPARING_REPOSITORY') return 'LISTING_MICROAGENTS';
  return spec.agent !== null && startStatus !== 'STARTING_AGENT' ? 'STARTING_AGENT' : 'READY';
}

/** The conversation with its new start status, with a version one higher; null where the steps lack that move. */
export function advanceStart(
  conversation: Conversation,
  status: ConversationStartStatus,
  detail: string | null,
  now: number,
): Conversation | null {
  if (conversation.deletedAt !== null || !startSteps[conversation.startStatus].includes(status)) return null;
  return { ...conversation, startStatus: status, statusDetail: detail, version: conversation.version + 1, updatedAt: now };
}

type InSandbox = 'WAITING_FOR_SANDBOX' | 'PREPARING_REPOSITORY' | 'LISTING_MICROAGENTS' | 'STARTING_AGENT';

/** Every step from WAITING_FOR_SANDBOX on needs the sandbox to run: one that was paused meanwhile is resumed. */
function inSandbox(conversation: Conversation, status: InSandbox, sandbox: Sandbox): StartStep {
  switch (sandbox.status) {
    case 'RUNNING':
      return inRunning(conversation, status, sandbox);
    case 'PAUSED':
      return { kind: 'resume-sandbox' };
    case 'STARTING':
    case 'PAUSING':
    case 'RESUMING':
      return { kind: 'await-sandbox' };
    case 'ERROR':
    case 'MISSING':
      return failed(`${status}: its sandbox is ${sandbox.status}: ${sandbox.statusDetail ?? 'no reason is known'}`);
  }
}

function inRunning(conversation: Conversation, status: InSandbox, sandbox: Sandbox): StartStep {
  const { selectedRepository: repository } = conversation;
  if (status === 'PREPARING_REPOSITORY' && repository !== null) return { kind: 'prepare-repository', sandbox, repository };
  if (status === 'LISTING_MICROAGENTS' && repository !== null) return { kind: 'list-microagents', sandbox, repository };
  if (status === 'STARTING_AGENT' && sandbox.spec.agent !== null) return { kind: 'start-agent', sandbox };
  return { kind: 'record', status: statusAfter(conversation, sandbox), detail: null };
}

function failed(detail: string): StartStep {
  return { kind: 'record', status: 'ERROR', detail };
}
