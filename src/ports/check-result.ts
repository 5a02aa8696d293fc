/** The result of a check. The detail is one line for a person: it says how to fix a problem, and contains no secret. */
export interface CheckResult {
  readonly ok: boolean;
  readonly detail: string;
  /** True if it answers, but refuses the deployment's credential. */
  readonly isRefused?: boolean;
}
