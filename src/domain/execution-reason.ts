import type { None } from './reason.ts';

/** The reasons of executions, with their data. Times are in milliseconds. */
export interface ExecutionReasonData {
  execution_timed_out: { readonly afterMs: number };
  /** Its start failed, and the runtime does not have it. */
  execution_not_started: None;
  execution_vanished: None;
  /** Its sandbox was stopped or went away before it ended. */
  execution_sandbox_ended: None;
  /** Something in the sandbox ended what watched over it. */
  execution_end_unknown: None;
  /** It is not durable. */
  execution_attached: None;
  /** The runtime has no terminals. */
  terminal_unsupported: None;
  /** The engine does not carry out anything in the container of the sandbox. */
  container_stuck: { readonly container: string };
}
