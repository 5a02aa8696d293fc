/** What becomes of an agent's requests for permission: granted, put to the owner, or refused. */
export const permissionPolicies = ['allow', 'ask', 'deny'] as const;

export type PermissionPolicy = (typeof permissionPolicies)[number];

/** How a coding agent is run in a sandbox. */
export interface AgentSpec {
  /** The protocol that it speaks over its standard streams. */
  readonly protocol: 'acp';
  readonly command: readonly string[];
  /** Variables for its process alone. */
  readonly env: Readonly<Record<string, string>>;
  /** Names of variables of the deployment's environment whose values its process gets under the same names. */
  readonly secrets: readonly string[];
  /** The method of the agent's own list by which it is told to authenticate before a session is opened; null is none. */
  readonly authMethod: string | null;
  /** The policy of a conversation that names none. */
  readonly permissions: PermissionPolicy;
  /** How long it may take from its start until it has a session. */
  readonly startWithinMs: number;
}

/** A message as its reader knows it. */
export type MessageRole = 'user' | 'agent';

/** `answer` is meant for the reader, `thought` shows how the agent came to it. */
export type MessageChannel = 'answer' | 'thought';

export const toolCallStatuses = ['pending', 'in_progress', 'completed', 'failed'] as const;

export type ToolCallStatus = (typeof toolCallStatuses)[number];

/** A tool call as it stands now. */
export interface ToolCall {
  readonly toolCallId: string;
  readonly title: string;
  /** `read`, `edit`, `execute`...: what the agent says that it is. */
  readonly toolKind: string;
  readonly status: ToolCallStatus;
  /** Files that it touches, as paths inside the sandbox. */
  readonly paths: readonly string[];
  /** What it shows: text, or a change of a file. */
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

/** One of the answers that an agent offers. */
export interface PermissionOption {
  readonly optionId: string;
  readonly name: string;
  readonly kind: 'allow_once' | 'allow_always' | 'reject_once' | 'reject_always';
}

/** What an agent asks leave for. */
export interface PermissionRequest {
  readonly permissionId: string;
  readonly toolCallId: string;
  readonly title: string;
  readonly options: readonly PermissionOption[];
}

/** How a turn ended. `failed`: the agent answered with an error; `interrupted`: the agent or its connection ended. */
export type TurnStopReason =
  | 'end_turn'
  | 'max_tokens'
  | 'max_turn_requests'
  | 'refusal'
  | 'cancelled'
  | 'failed'
  | 'interrupted';

const granting = ['allow_once', 'allow_always'] as const;
const refusing = ['reject_once', 'reject_always'] as const;

/**
 * The option that a policy chooses by itself, the narrowest of its kind first; null where the agent offers none. `ask`
 * chooses nothing.
 */
export function optionOf(policy: Exclude<PermissionPolicy, 'ask'>, options: readonly PermissionOption[]): PermissionOption | null {
  const wanted = policy === 'allow' ? granting : refusing;
  for (const kind of wanted) {
    const option = options.find((option) => option.kind === kind);
    if (option !== undefined) return option;
  }
  return null;
}
