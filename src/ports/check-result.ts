/** Whether a part works. `detail` is one line for a person; it says how to repair what does not work. */
export interface CheckResult {
  readonly ok: boolean;
  readonly detail: string;
}
