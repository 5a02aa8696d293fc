import type { MessageChannel, PlanEntry, ToolCall, TurnStopReason } from '../domain/agent.ts';
import type { PermissionRequest } from '../domain/permission.ts';
import type { Message } from '../domain/conversation.ts';
import type { EventData } from '../domain/event.ts';
import { Refusal } from '../domain/failure.ts';
import type { Reason } from '../domain/reason.ts';

/** The standard streams of an agent's process. Opening a session hands them over to it. */
export interface AgentStreams {
  readonly stdin: WritableStream<Uint8Array>;
  readonly stdout: ReadableStream<Uint8Array>;
}

/** A report of an agent at work. Reports come in order. */
export type AgentUpdate =
  | { readonly kind: 'message_chunk'; readonly channel: MessageChannel; readonly messageId: string | null; readonly text: string }
  /** The message is complete, because a request for permission or the end of the turn follows. */
  | { readonly kind: 'message_end' }
  /** The complete call, with the values that the agent's update left out. */
  | { readonly kind: 'tool_call'; readonly call: ToolCall }
  | { readonly kind: 'plan'; readonly entries: readonly PlanEntry[] }
  | ({ readonly kind: 'usage' } & EventData['usage']);

export type AgentPermission = Omit<PermissionRequest, 'permissionId'>;

/** The other side of the agent: it takes updates and answers requests for permission. */
export interface AgentClient {
  /**
   * Takes an update of the turn. No more of the agent's output is read until this resolves, so the agent can't flood us. If it rejects, the
   * session ends, so no update is lost silently.
   */
  update(update: AgentUpdate): Promise<void>;

  /**
   * Resolves to the id of the chosen option, or to null if the request is withdrawn: the signal fired, or the turn was cancelled. At the
   * end of the turn, the signal fires for a request that is still open. The update with the tool call came before.
   */
  permission(request: AgentPermission, signal: AbortSignal): Promise<string | null>;

  /**
   * Called when the agent says something, calls a tool or requests permission between turns, for example because its background task has
   * ended. Nothing more of its output is read until the next turn, which begins with it.
   */
  onUnpromptedWork(): void;
}

export interface OpenAgentSession {
  readonly streams: AgentStreams;
  /** Absolute path inside the sandbox. */
  readonly workingDir: string;
  /** The agent's own authentication method, which it uses first, with values from its environment. Null: none. */
  readonly authMethod: string | null;
  /** The session to continue. Null: a new one. */
  readonly sessionId: string | null;
  readonly client: AgentClient;
  /** Called with the number of output bytes in memory that have not become an update yet, such as an incomplete line. */
  readonly onHeld?: (bytes: number) => void;
  /** Called with each line of the output that is no message of the protocol, and not the beginning of one. */
  readonly onOtherOutput?: (line: string) => void;
}

/** A session with a turn that an earlier process began. */
export interface ResumeAgentSession extends Pick<OpenAgentSession, 'streams' | 'client' | 'onHeld' | 'onOtherOutput'> {
  readonly sessionId: string;
  /** What `nextRequest` returned before the turn. */
  readonly requestId: number;
}

export interface AgentTurn {
  readonly stopReason: TurnStopReason;
  /** Why, if it failed or was interrupted. */
  readonly reason: Reason | null;
}

/** A session with a running agent. */
export interface AgentSession {
  readonly id: string;
  /** True if the requested session was found. Its earlier updates are not reported again. */
  readonly loaded: boolean;

  /**
   * Resolves when all requests of the agent are answered, to the id of the next request. Another process needs it to resume the session.
   */
  nextRequest(): Promise<number>;

  /**
   * Sends the message. Resolves when the turn has ended and the client has taken every update of it. One turn at a time. Never rejects: if
   * the agent fails, the turn ends as `failed`; if it is gone, as `interrupted`. A turn has no time limit here; the caller cancels or
   * closes.
   */
  prompt(message: Message): Promise<AgentTurn>;

  /**
   * Takes the work that the agent does without a message, as a turn. No protocol reports its end, so it resolves when the signal fires;
   * like `prompt`, also if the agent is gone.
   */
  follow(over: AbortSignal): Promise<AgentTurn>;

  /**
   * Asks the agent to stop the turn. `prompt` resolves when it has stopped, `follow` still when its signal fires. Idempotent; has no effect
   * between turns.
   */
  cancel(): Promise<void>;

  /** Resolves with the reason when the connection has ended. Never rejects. */
  readonly closed: Promise<Reason>;

  /** Ends the connection and closes both streams, not the agent's process. A turn that runs ends as `interrupted`. Idempotent. */
  close(): Promise<void>;
}

/** No session could be opened. The reason is shown to the conversation's owner. */
export class AgentRefusal extends Refusal {
  override readonly name = 'AgentRefusal';
}

/** A protocol that coding agents speak over their standard streams. It holds nothing open besides its sessions, so it has no `close`. */
export interface AgentProtocol {
  /** The name in the `agent` of a spec: `acp`. */
  readonly name: string;

  /**
   * Opens the requested session if the agent still has it, otherwise a new one. Rejects with an {@link AgentRefusal} if the agent does
   * not speak the protocol, speaks another version, refuses or ends. When the signal fires, it rejects with `signal.reason` itself. In
   * both cases the streams are closed. After it has resolved, the signal has no effect.
   */
  open(request: OpenAgentSession, signal: AbortSignal): Promise<AgentSession>;

  /**
   * Continues a session in the middle of a turn. `prompt`, with the message of the turn, writes exactly what the earlier process wrote, and
   * the caller passes on only the bytes that the agent has not got yet; `follow` writes nothing. The agent's output since the beginning of
   * the turn is read again, so the same updates come in the same order. Rejects with an {@link AgentRefusal} if it can't continue the
   * session.
   */
  resume(request: ResumeAgentSession): Promise<AgentSession>;
}
