const firstBackOffMs = 1000;

const maxBackOffMs = 300_000;

/** Returns how long to wait after so many failures in a row: twice as long after each further one, at most five minutes. */
export function backOffMs(failures: number): number {
  return Math.min(maxBackOffMs, firstBackOffMs * 2 ** (failures - 1));
}
