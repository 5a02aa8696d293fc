/**
 * One thing that every adapter of a port must do. Suites are lists of cases and know no test framework, so that
 * whoever writes an adapter runs them with their own: `for (const { name, run } of suite) test(name, run)`.
 */
export interface ContractCase {
  readonly name: string;
  /** Rejects with an `AssertionError` if the adapter breaks the contract. */
  readonly run: () => Promise<void>;
}
