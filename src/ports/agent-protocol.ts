import type { MessageChannel, PermissionOption, PlanEntry, ToolCall, TurnStopReason } from '../domain/agent.ts';
import type { Message } from '../domain/conversation.ts';
import type { EventData } from '../domain/event.ts';
import type { Reason } from '../domain/reason.ts';

/** The standard streams of an agent's process. */
export interface AgentStreams {
  readonly stdin: WritableStream<Uint8Array>;
  readonly stdout: ReadableStream<Uint8Array>;
}

/** What an agent says while it works, in order. */
export type AgentUpdate =
  | { readonly kind: 'message_chunk'; readonly channel: MessageChannel; readonly messageId: string | null; readonly text: string }
  /** The whole call, also what the agent's update left out. */
  | { readonly kind: 'tool_call'; readonly call: ToolCall }
  | { readonly kind: 'plan'; readonly entries: readonly PlanEntry[] }
  | ({ readonly kind: 'usage' } & EventData['usage']);

/** A request for permission. */
export interface AgentPermission {
  readonly toolCallId: string;
  readonly title: string;
  readonly options: readonly PermissionOption[];
}

/** Receives what an agent says and asks. */
export interface AgentClient {
  /**
   * Receives an update of the turn. Nothing more is read from the agent until this resolves, so a flood is held back. If it
   * rejects, the session ends.
   */
  update(update: AgentUpdate): Promise<void>;

  /**
   * Resolves to the id of the chosen option; null if the request is withdrawn (the signal fires, the turn is cancelled). An
   * update with the tool call comes before it.
   */
  permission(request: AgentPermission, signal: AbortSignal): Promise<string | null>;
}

export interface OpenAgentSession {
  readonly streams: AgentStreams;
  /** Absolute path inside the sandbox. */
  readonly workingDir: string;
  /** The agent's own method to authenticate with before the session is opened; null is none. */
  readonly authMethod: string | null;
  /** The session to continue; null for a new one. */
  readonly sessionId: string | null;
  readonly client: AgentClient;
}

export interface AgentTurn {
  readonly stopReason: TurnStopReason;
  /** Why, if it failed or was interrupted. */
  readonly reason: Reason | null;
}

/** A session with a running agent. */
export interface AgentSession {
  readonly id: string;
  /** True if it continues the requested session. Its earlier messages are not repeated. */
  readonly loaded: boolean;

  /**
   * Sends the message and resolves when the turn has ended and the client has received every update of it. One at a time.
   * Never rejects: a turn is `failed` if the agent reports an error, and `interrupted` if the agent is gone.
   */
  prompt(message: Message): Promise<AgentTurn>;

  /** Asks the agent to stop the turn. It ends a moment later. Idempotent; does nothing between turns. */
  cancel(): Promise<void>;

  /** Resolves with the reason when the connection has ended. */
  readonly closed: Promise<Reason>;

  /** Ends the connection. A running turn is `interrupted`. Idempotent. */
  close(): Promise<void>;
}

/** The agent has no session. The reason is shown to the conversation's owner. */
export class AgentRefusal extends Error {
  override readonly name = 'AgentRefusal';
  readonly reason: Reason;

  constructor(reason: Reason, options?: ErrorOptions) {
    super(JSON.stringify(reason), options);
    this.reason = reason;
  }
}

/** A protocol that coding agents speak over their standard streams. */
export interface AgentProtocol {
  /** `acp`. */
  readonly name: string;

  /**
   * Opens a session: the requested one if the agent still has it, otherwise a new one. Rejects with an {@link AgentRefusal}
   * if the agent does not speak the protocol or speaks another version, refuses or ends, and with the signal's reason when it
   * fires. The streams are closed then.
   */
  open(request: OpenAgentSession, signal: AbortSignal): Promise<AgentSession>;
}
