import type { Conversation, ConversationStartStatus } from './conversation.ts';
import type { Sandbox } from './sandbox.ts';

/** From each start status, those that may follow. */
export const startSteps: Readonly<Record<ConversationStartStatus, readonly ConversationStartStatus[]>> = {
  WORKING: ['WAITING_FOR_SANDBOX', 'ERROR'],
  WAITING_FOR_SANDBOX: ['READY', 'ERROR'],
  READY: [],
  ERROR: [],
};

/** Is its start or its end under way? */
export function isUnsettled({ startStatus, deletedAt, removedAt }: Conversation): boolean {
  return deletedAt === null ? startSteps[startStatus].length > 0 : removedAt === null;
}

/** What to do next for the start of a conversation. `sandbox` is null where there is none, or a deleted one. */
export type StartStep =
  | { readonly kind: 'none' }
  | { readonly kind: 'start-sandbox' }
  | { readonly kind: 'resume-sandbox' }
  | { readonly kind: 'await-sandbox' }
  | { readonly kind: 'record'; readonly status: ConversationStartStatus; readonly detail: string | null };

export function decideStart(conversation: Conversation, sandbox: Sandbox | null): StartStep {
  switch (conversation.startStatus) {
    case 'READY':
    case 'ERROR':
      return { kind: 'none' };
    case 'WORKING':
      if (sandbox !== null) return { kind: 'record', status: 'WAITING_FOR_SANDBOX', detail: null };
      return conversation.startsSandbox ? { kind: 'start-sandbox' } : failed('its sandbox was deleted');
    case 'WAITING_FOR_SANDBOX':
      return sandbox === null ? failed('its sandbox was deleted') : waiting(sandbox);
  }
}

/** The conversation with its new start status, one generation on; null where the steps lack that move. */
export function advanceStart(
  conversation: Conversation,
  status: ConversationStartStatus,
  detail: string | null,
  now: number,
): Conversation | null {
  if (conversation.deletedAt !== null || !startSteps[conversation.startStatus].includes(status)) return null;
  return { ...conversation, startStatus: status, statusDetail: detail, generation: conversation.generation + 1, updatedAt: now };
}

function waiting(sandbox: Sandbox): StartStep {
  switch (sandbox.status) {
    case 'RUNNING':
      return { kind: 'record', status: 'READY', detail: null };
    case 'PAUSED':
      return { kind: 'resume-sandbox' };
    case 'STARTING':
    case 'PAUSING':
    case 'RESUMING':
      return { kind: 'await-sandbox' };
    case 'ERROR':
    case 'MISSING':
      return failed(`its sandbox is ${sandbox.status}: ${sandbox.statusDetail ?? 'no reason is known'}`);
  }
}

function failed(detail: string): StartStep {
  return { kind: 'record', status: 'ERROR', detail };
}
