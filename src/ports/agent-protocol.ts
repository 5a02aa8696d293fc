import type {
  MessageChannel, PermissionOption, PlanEntry, ToolCall, TurnStopReason,
} from '../domain/agent.ts';
import type { Message } from '../domain/conversation.ts';

/** The standard streams of an agent's process. */
export interface AgentStreams {
  readonly stdin: WritableStream<Uint8Array>;
  readonly stdout: ReadableStream<Uint8Array>;
}

/** What an agent says while it works, in order. */
export type AgentUpdate =
  | { readonly kind: 'message_chunk'; readonly channel: MessageChannel; readonly messageId: string | null; readonly text: string }
  /** The call as it stands, what an update left out included. */
  | { readonly kind: 'tool_call'; readonly call: ToolCall }
  | { readonly kind: 'plan'; readonly entries: readonly PlanEntry[] }
  | { readonly kind: 'usage'; readonly usedTokens: number; readonly contextTokens: number; readonly cost: { readonly amount: number; readonly currency: string } | null };

/** What an agent asks leave for. */
export interface AgentPermission {
  readonly toolCallId: string;
  readonly title: string;
  readonly options: readonly PermissionOption[];
}

/** Whoever talks with the agent. */
export interface AgentClient {
  /**
   * Takes an update of the turn; the agent is not read on until this has answered, so that a flood is held back. Rejecting ends
   * the session: nothing is lost in silence.
   */
  update(update: AgentUpdate): Promise<void>;

  /**
   * Answers with the id of the option that was chosen; null where the request is withdrawn (the signal fired, the turn was
   * cancelled). The tool call that it is about was told as an update before.
   */
  permission(request: AgentPermission, signal: AbortSignal): Promise<string | null>;
}

export interface OpenAgentSession {
  readonly streams: AgentStreams;
  /** Absolute path inside the sandbox. */
  readonly workingDir: string;
  /** The agent's own method by which it is to authenticate first, with what its environment holds; null is none. */
  readonly authMethod: string | null;
  /** The session to go on with; null for a new one. */
  readonly sessionId: string | null;
  readonly client: AgentClient;
}

export interface AgentTurn {
  readonly stopReason: TurnStopReason;
  /** What the agent said of a failure, in words. */
  readonly detail: string | null;
}

/** A session with an agent that runs. */
export interface AgentSession {
  readonly id: string;
  /** Was the session that was asked for found again? What was said in it before is not told anew. */
  readonly loaded: boolean;

  /**
   * Hands the message over and answers when the turn has ended; every update of the turn was taken by then. One at a
   * time. Never rejects: an agent that fails ends the turn as `failed`, one that is gone as `interrupted`.
   */
  prompt(message: Message): Promise<AgentTurn>;

  /** Asks the agent to leave off the turn, which then ends by itself. Idempotent; nothing happens between turns. */
  cancel(): Promise<void>;

  /** Answers when the connection has ended, with why in words. */
  readonly closed: Promise<string>;

  /** Ends the connection; a turn under way is `interrupted`. Idempotent. */
  close(): Promise<void>;
}

/** Why no session came about, in words for a person: it goes into the conversation's `status_detail`. */
export class AgentRefusal extends Error {
  override readonly name = 'AgentRefusal';
}

/** A protocol that coding agents speak over their standard streams. */
export interface AgentProtocol {
  /** `acp`. */
  readonly name: string;

  /**
   * Opens a session: the one that is asked for where the agent still has it, a new one otherwise. Rejects with an
   * {@link AgentRefusal} where the agent does not speak the protocol, speaks another version, refuses or ends; with
   * the signal's reason when it fires. The streams are closed then.
   */
  open(request: OpenAgentSession, signal: AbortSignal): Promise<AgentSession>;
}
