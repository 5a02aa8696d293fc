/** Whether a part answers. The detail is one line for a person that says how to fix what does not work, without a secret. */
export interface CheckResult {
  readonly ok: boolean;
  readonly detail: string;
}
