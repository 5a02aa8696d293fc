import type { TurnStopReason } from './agent.ts';
import { canonicalJson } from './fingerprint.ts';
import type { ChangeReasonData } from './change.ts';
import type { ExecutionReasonData } from './execution.ts';
import type { FailureData } from './failure.ts';
import type { FrontMatterProblem } from './microagent.ts';
import type { ParameterReasonData } from './sandbox-parameters.ts';
import type { ProbeMiss } from './readiness.ts';
import type { RepositoryNameProblem } from './repository-name.ts';
import type { LimitReached } from './admission-limits.ts';
import type { SandboxStatus } from './sandbox.ts';

/** The reason has no data besides its code. */
export type None = unknown;
export interface Cause {
  readonly cause: Reason | null;
}
export interface Exit {
  /** Null if it is not known. */
  readonly exitCode: number | null;
  /** The name of the signal that ended the process: `SIGKILL`; null if none did. */
  readonly signal: string | null;
}
/** Details of processes that ended or were not ready. Unknown details are left out. */
export interface EndDetails {
  readonly phase?: 'starting' | 'running' | 'resuming';
  /** The end of the command's output, at most 2 KiB, without secrets. */
  readonly output?: string;
}
/** `message` comes from outside: bounded, on one line, without secrets; empty if there is none. It is shown and never parsed. */
export interface ExternalMessage {
  readonly message: string;
}
export interface ImageName {
  readonly image: string;
  readonly registry: string;
}
export interface Authentication extends ExternalMessage {
  /** The method that the spec chose. */
  readonly methodId: string | null;
  readonly variables: readonly string[];
  readonly methods: readonly { readonly id: string; readonly name: string; readonly description?: string }[];
}

/** The list is closed: the table of messages does not compile until it is complete. Times are in milliseconds. */
export interface ReasonData extends ChangeReasonData, ExecutionReasonData, ParameterReasonData {
  // Any part
  explained: ExternalMessage;
  noted: { readonly text: string };
  failure: FailureData;
  internal_error: None;
  closed: None;
  unreachable: None;
  host_unknown: None;
  connection_lost: None;
  certificate_untrusted: None;
  server_error: { readonly status: number };
  unexpected_status: { readonly status: number };
  malformed_answer: { readonly about: string };
  /** `limit` says what is bounded. */
  too_large: { readonly limit: string };
  disk_full: None;
  process_limit_reached: None;
  command_not_begun: Cause;
  locked: None;
  /** Without an id, the whole store is damaged, or a part without one. */
  damaged: { readonly recordId?: string };

  // What is wrong with a file
  /** `line` counts from 1; null if the problem is not in a single line. */
  front_matter: { readonly problem: FrontMatterProblem; readonly line: number | null };

  // What is wrong with an argument of a request
  unknown_sandbox_spec: { readonly specId: string | null };
  user_id: None;
  sandbox_of_other_user: None;
  unknown_page: None;
  unknown_option: { readonly options: readonly string[] };
  repository_name: { readonly problem: RepositoryNameProblem };
  sandbox_path: ExternalMessage;
  sandbox_directory: ExternalMessage;
  sandbox_working_dir: ExternalMessage;
  sandbox_archive: ExternalMessage;
  not_known_to_runtime: None;
  not_in_quarantine: None;

  // What a user, a rule or somebody else did to a sandbox
  paused_by_owner: None; paused_by_administrator: None;
  resumed_by_owner: None; resumed_by_administrator: None;
  woken_by_access: None;
  woken_by_conversation: None;
  deleted_by_owner: None; deleted_by_administrator: None;
  deleted_with_conversation: None;
  /** The store did not know it. Spec and owner are null if the runtime does not know them either. */
  quarantined: { readonly keptForMs: number; readonly specId: string | null; readonly ownerId: string | null };
  adopted: None;
  claimed_from_pool: { readonly instanceId: string };
  idle: { readonly tier: 'freeze' | 'stop' | 'delete'; readonly afterMs: number };
  life_over: { readonly afterMs: number };
  disk_pressure: { readonly usedPercent: number; readonly limitPercent: number };
  made_room: LimitReached & { readonly forSandbox: string };
  ended_outside: Cause;
  ended_while_frozen: Cause;
  frozen_outside: None;
  vanished: None;
  host_restarted: None;
  being_removed: None;
  pause_refused: None;
  freeze_refused: None;
  /** It must not run, but the runtime does not stop or freeze it. `before` is the previous reason. */
  still_running: Cause & { readonly before: Reason | null };
  pool_spec_changed: None;
  pool_full: None;
  pool_member_lost: Cause & { readonly status: SandboxStatus };

  // How a sandbox's start or resumption goes
  waiting_for_start_slot: None;
  /** Bytes are null until the registry reports them. */
  pulling_image: {
    readonly image: string;
    readonly layers: number;
    readonly doneLayers: number;
    readonly bytes: number | null;
    readonly doneBytes: number | null;
  };
  creating_sandbox: None;
  starting_command: None;
  runtime_silent: None;
  probe_missed: { readonly probe: 'tcp' | 'http'; readonly port: number; readonly path: string | null; readonly miss: ProbeMiss };
  processes_continued: None;
  processes_restarted: None;
  /** `last` is the last known reason why it was not ready. */
  not_ready_in_time: EndDetails & { readonly withinMs: number; readonly last: Reason | null };
  ended_while_starting: EndDetails;
  ended_while_resuming: EndDetails;
  image_not_named: None;
  image_name_invalid: { readonly image: string };
  image_not_found: ImageName;
  image_login_required: ImageName;
  image_login_refused: ImageName;
  image_pull_timeout: ImageName & { readonly limitMs: number };
  image_pull_failed: ImageName & ExternalMessage;
  disk_limit_unavailable: None;
  isolation_unavailable: { readonly name: string; readonly available: readonly string[] };
  command_not_named: None;
  command_not_found: { readonly command: string };
  command_not_executable: { readonly command: string };
  user_not_found: { readonly kind: 'user' | 'group'; readonly name: string };
  launch_refused: ExternalMessage;
  invalid_id: None;

  // How a sandbox ended
  processes_ended: EndDetails;
  processes_killed: EndDetails;
  process_exited: EndDetails & Exit & { readonly program: string | null };
  out_of_memory: EndDetails & Exit;
  main_process_ended: Cause;

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

  // Secrets of a sandbox's own command
  sandbox_secrets_missing: { readonly names: readonly string[] };

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

export type ReasonCode = keyof ReasonData;

/** Why something has its state: a code with its data. */
export type Reason = { [C in ReasonCode]: { readonly code: C } & ReasonData[C] }[ReasonCode];

export type ReasonOf<C extends ReasonCode> = Extract<Reason, { readonly code: C }>;

export function isSameReason(a: Reason | null, b: Reason | null): boolean {
  return a === b || canonicalJson(a) === canonicalJson(b);
}

/** Returns a reason for which an adapter has no code. */
export function explained(message: string): ReasonOf<'explained'> {
  return { code: 'explained', message };
}

const reasonsWithEndDetails = [
  'not_ready_in_time', 'ended_while_starting', 'ended_while_resuming', 'processes_ended', 'processes_killed', 'process_exited',
  'out_of_memory',
] as const satisfies readonly ReasonCode[];

/** Returns true if the reason can have the details of an {@link EndDetails}. */
export function hasEndDetails(reason: Reason): reason is ReasonOf<(typeof reasonsWithEndDetails)[number]> {
  return reasonsWithEndDetails.some((code) => code === reason.code);
}
