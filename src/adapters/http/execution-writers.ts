/**
 * The client that may write to each execution, among the clients attached to this process. The others can only read. Input by other
 * requests is not counted.
 */
export class ExecutionWriters {
  readonly #writers = new Map<string, { readonly lost: () => void }>();

  /**
   * Makes the caller the writer if there is none, or if `takeover` is set. Returns a function that gives this up. Returns null if another
   * client is the writer.
   */
  claim(executionId: string, takeover: boolean, lost: () => void): (() => void) | null {
    const present = this.#writers.get(executionId);
    if (present !== undefined && !takeover) return null;
    const own = { lost };
    this.#writers.set(executionId, own);
    present?.lost();
    return () => {
      if (this.#writers.get(executionId) === own) this.#writers.delete(executionId);
    };
  }
}
