/**
 * One thing that every adapter of a port must do. Suites are lists of cases and know no test framework, so that
 * whoever writes an adapter runs them with their own: `for (const { name, run } of suite) test(name, run)`.
 */
export interface ContractCase {
  readonly name: string;
  /** Rejects with an `AssertionError` if the adapter breaks the contract. */
  readonly run: () => Promise<void>;
}

/** Runs a case and closes its harness, whose failure is a failure of the case as well. */
export async function runAndClose(run: () => Promise<void>, close: () => Promise<void>): Promise<void> {
  const failed = await run().then(() => null, (error: unknown) => ({ error }));
  try {
    await close();
  } catch (cause) {
    if (failed === null) throw new Error("the harness's close failed", { cause });
    if (failed.error instanceof Error) failed.error.message += `\nBesides, the harness's close failed: ${String(cause)}`;
  }
  if (failed !== null) throw failed.error;
}
