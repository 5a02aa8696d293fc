/** Whether a part answers, in one line that says how to mend what does not. */
export interface CheckResult {
  readonly ok: boolean;
  readonly detail: string;
}
