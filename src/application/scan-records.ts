const pageSize = 500;

/** Yields all records of a scan, page by page, until the signal fires. */
export async function* scanRecords<T extends { readonly id: string }>(
  scan: (after: string | null, limit: number) => Promise<readonly T[]>, signal: AbortSignal,
): AsyncGenerator<T, void> {
  let after: string | null = null;
  do {
    const records = await scan(after, pageSize);
    yield* records;
    after = records.length === pageSize ? (records.at(-1)?.id ?? null) : null;
  } while (after !== null && !signal.aborted);
}
