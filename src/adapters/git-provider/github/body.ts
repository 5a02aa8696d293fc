/** The body is larger than what is read of an answer. */
export class TooLargeBody extends Error {}

/** Reads a body as UTF-8. Rejects where it breaks off, and where it is larger than `maxBytes`. */
export async function readBody(body: unknown, maxBytes: number): Promise<string> {
  if (!(body instanceof ReadableStream)) return typeof body === 'string' ? body : '';
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  const reader: ReadableStreamDefaultReader<unknown> = body.getReader();
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    const chunk = read.value instanceof Uint8Array ? read.value : new Uint8Array();
    bytes += chunk.byteLength;
    if (bytes > maxBytes) {
      await discard(reader);
      throw new TooLargeBody();
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** Lets the connection go on without the body. */
export async function discardBody(body: unknown): Promise<void> {
  if (body instanceof ReadableStream) await discard(body.getReader());
}

async function discard(reader: ReadableStreamDefaultReader<unknown>): Promise<void> {
  await reader.cancel().catch(() => null);
}
