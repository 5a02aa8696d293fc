import type { TarEntry } from '../../tar-entries.ts';

const maxBytes = 1 << 20;
/** What an entry costs besides its content. */
const entryBytes = 512;

/**
 * Reads entries ahead, for what they lead through to be looked up in one go: as many as fit a MiB, with their contents in memory. One
 * that does not fit is the last of its batch, and its content is to be read to its end before the next batch is asked for.
 */
export async function* inBatches(entries: AsyncIterable<TarEntry>): AsyncGenerator<readonly TarEntry[], void, void> {
  let batch: TarEntry[] = [];
  let bytes = 0;
  for await (const entry of entries) {
    bytes += entryBytes + (entry.kind === 'file' ? entry.size : 0);
    if (bytes <= maxBytes) {
      batch.push(entry.kind === 'file' ? { ...entry, content: await gathered(entry.content) } : entry);
      continue;
    }
    yield [...batch, entry];
    batch = [];
    bytes = 0;
  }
  if (batch.length > 0) yield batch;
}

async function gathered(content: AsyncIterable<Uint8Array>): Promise<AsyncIterable<Uint8Array>> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of content) chunks.push(chunk);
  return (async function* () {
    yield* chunks;
  })();
}
