import type { TurnStopReason } from './agent.ts';
import type { Cause, ExternalMessage, None, Reason } from './reason.ts';

export interface Authentication extends ExternalMessage {
  /** The method that the spec chose. */
  readonly methodId: string | null;
  readonly variables: readonly string[];
  readonly methods: readonly { readonly id: string; readonly name: string; readonly description?: string }[];
}

/** The reasons of the state of a conversation, its turns and its agent. */
export interface ConversationReasonData {
  // Conversations
  sandbox_deleted: None;
  sandbox_lost: Cause & { readonly status: 'ERROR' | 'MISSING' };
  step_failed: Cause & { readonly step: string };
  not_done_in_time: { readonly withinMs: number };
  /** `percent` is the progress of the phase; null until git reports it. */
  fetching_repository: { readonly phase: 'receiving' | 'unpacking' | null; readonly percent: number | null };
  fetching_repository_again: None;
  copying_files: None;
  running_setup_script: { readonly executionId: string };
  /** If the script exited by itself, `cause` is null. Otherwise `exitCode` is null. */
  setup_script_failed: Cause & { readonly exitCode: number | null };
  setup_script_unfinished: { readonly withinMs: number };
  /** The runtime did not answer to its start. */
  setup_script_unconfirmed: Cause;
  microagents_unavailable: Cause;
  message_waiting: Cause;
  messages_dropped: Cause & { readonly count: number };
  start_failed: Cause;
  conversation_archived: None;
  keeping_changes: None;
  /** `cause` is null if an earlier version archived it. `sandboxId` is the sandbox that stays because of that; absent if it was deleted. */
  changes_not_kept: Cause & { readonly sandboxId?: string };
  queue_full: { readonly limit: 'messages' | 'bytes'; readonly max: number };

  // Turns and permissions
  turn_failed: { readonly stopReason: TurnStopReason };
  interrupted_by_shutdown: None;
  message_requeued: None;
  message_withdrawn: None;
  interrupted_by_restart: None;
  interrupted_by_archiving: None;
  sandbox_stopped: Cause;
  turn_silent: { readonly withinMs: number };
  permission_unanswered: { readonly withinMs: number };
  permission_by_policy: { readonly policy: 'allow' | 'deny' };
  permission_not_offered: { readonly policy: 'allow' | 'deny' };
  permission_withdrawn: None;

  // Agents
  agent_not_named: None;
  agent_protocol_unknown: { readonly protocol: string };
  agent_secrets_missing: { readonly names: readonly string[] };
  agent_start_failed: Cause;
  agent_not_ready_in_time: { readonly withinMs: number; readonly last: Reason | null };
  /** `output` is the end of its standard error, and of its standard output what is no message. */
  agent_ended: Cause & { readonly exitCode: number | null; readonly output: string };
  /** It did not end, but was not ready. `output` is as in `agent_ended`. */
  agent_running: { readonly output: string };
  agent_exited: None;
  agent_error: ExternalMessage;
  agent_session_refused: ExternalMessage;
  agent_session_not_found: None;
  agent_session_closed: None;
  agent_connection_lost: None;
  agent_version_unsupported: { readonly offered: number; readonly supported: number };
  agent_authentication_required: Authentication;
  agent_authentication_refused: Authentication & { readonly methodId: string };
  agent_output_invalid: { readonly maxLines: number };
  agent_line_too_long: { readonly maxBytes: number };
  agent_output_not_stored: None;
  agent_stop_reason_unknown: { readonly stopReason: string };
  agent_busy: None;
}
