import type { PermissionPolicy } from './permission.ts';

/** The Agent Client Protocol, which every deployment has unless it chooses others. */
export const defaultProtocol = 'acp';

export interface AgentSpec {
  /** The name of the protocol that it speaks over its standard streams. */
  readonly protocol: string;
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Names of variables of the deployment's environment whose values its process gets under the same names. */
  readonly secrets: readonly string[];
  /** The agent's own name of its authentication method, used before a session is opened; null: none. */
  readonly authMethod: string | null;
  /** The policy of conversations that choose none. */
  readonly permissions: PermissionPolicy;
  /** How long a start may take until the agent has a session. Includes the wait for the end of the previous agent. */
  readonly startWithinMs: number;
  /** How long a turn may go on without any output. */
  readonly turnTimeoutMs: number;
  /** How long it waits for its user's answer. */
  readonly permissionTimeoutMs: number;
}

/** The time limits of an agent unless its spec says otherwise. */
export const defaultAgentTimes = { startWithinMs: 60_000, turnTimeoutMs: 3_600_000, permissionTimeoutMs: 86_400_000 };

export type MessageRole = 'user' | 'agent';

/** `answer` is meant for the reader, `thought` shows how the agent came to it. */
export type MessageChannel = 'answer' | 'thought';

export const toolCallStatuses = ['pending', 'in_progress', 'completed', 'failed'] as const;

export type ToolCallStatus = (typeof toolCallStatuses)[number];

/** Returns true while the call has no result. */
export function isOpenCall({ status }: { readonly status: ToolCallStatus }): boolean {
  return status === 'pending' || status === 'in_progress';
}

export interface ToolCall {
  readonly toolCallId: string;
  readonly title: string;
  /** The kind of tool, as the agent names it: `read`, `edit`, `execute`. */
  readonly toolKind: string;
  readonly status: ToolCallStatus;
  readonly paths: readonly string[];
  readonly content: readonly ToolCallContent[];
}

export type ToolCallContent =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'diff'; readonly path: string; readonly oldText: string | null; readonly newText: string };

export interface PlanEntry {
  readonly content: string;
  readonly priority: 'high' | 'medium' | 'low';
  readonly status: 'pending' | 'in_progress' | 'completed';
}

/** How a turn ended. `failed`: the agent reported an error. `interrupted`: the agent or its connection ended. */
export const turnStopReasons = [
  'end_turn', 'max_tokens', 'max_turn_requests', 'refusal', 'cancelled', 'failed', 'interrupted',
] as const;

export type TurnStopReason = (typeof turnStopReasons)[number];
