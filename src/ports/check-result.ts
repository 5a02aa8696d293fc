/** The result of a check. The detail is one line for a person: it says how to fix a problem, and contains no secret. */
export interface CheckResult {
  readonly ok: boolean;
  readonly detail: string;
  /** If it answers, why it is not ok: it refuses the deployment's credential, or it limits the rate of requests. */
  readonly refusal?: 'credential' | 'rate_limit';
}
