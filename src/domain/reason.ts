import { canonicalJson } from './fingerprint.ts';
import type { ChangeReasonData } from './change.ts';
import type { ConversationReasonData } from './conversation-reason.ts';
import type { ExecutionReasonData } from './execution.ts';
import type { FailureData } from './failure.ts';
import type { FrontMatterProblem } from './microagent.ts';
import type { ParameterReasonData } from './sandbox-parameters.ts';
import type { RepositoryNameProblem } from './repository-name.ts';
import type { SandboxReasonData } from './sandbox-reason.ts';

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

/**
 * Every code needs a sentence in `failure-sentences.ts` or `reason-sentences.ts`. Otherwise it does not compile. Times are in
 * milliseconds.
 */
export interface ReasonData
  extends ChangeReasonData, ConversationReasonData, ExecutionReasonData, ParameterReasonData, SandboxReasonData {
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
  /** `limit` is the limit as text: `50000 files that differ`. */
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
