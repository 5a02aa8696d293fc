const maxBatches = 20;

/**
 * Runs batches until one leaves nothing or the signal fires, but at most 20: the rest is for the next call. `purgeBatch` returns true if
 * more may be left.
 */
export async function purgeInBatches(signal: AbortSignal, purgeBatch: () => Promise<boolean>): Promise<void> {
  for (let batches = 0; batches < maxBatches && !signal.aborted; batches += 1) {
    if (!(await purgeBatch())) return;
    // Other calls get their turn.
    await new Promise<void>((resolve) => void setImmediate(resolve));
  }
}
