import type { LimitReached } from './admission-limits.ts';
import type { ProbeMiss } from './readiness.ts';
import type { Cause, EndDetails, Exit, ExternalMessage, None, Reason } from './reason.ts';
import type { SandboxStatus } from './sandbox.ts';

export interface ImageName {
  readonly image: string;
  readonly registry: string;
}

/** The reasons of a sandbox's state. */
export interface SandboxReasonData {
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
  timeout_over: None;
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

  // Secrets of a sandbox's own command
  sandbox_secrets_missing: { readonly names: readonly string[] };
}
