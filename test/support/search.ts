import { createReadStream } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';

/** Returns the texts that reveal a secret: the secret itself, URL-encoded, in hex, and in base64 at any offset in a longer text. */
export function tracesOf(secret: string): string[] {
  const encoded = [0, 1, 2].flatMap((before) => {
    const text = Buffer.from(`${'\0'.repeat(before)}${secret}`).toString('base64').replace(/=+$/, '');
    const [head, tail] = [Math.ceil((before * 8) / 6), (before + Buffer.byteLength(secret)) % 3 === 0 ? 0 : 1];
    const inner = text.slice(head, text.length - tail);
    return [inner, inner.replaceAll('+', '-').replaceAll('/', '_')];
  });
  return [...new Set([secret, encodeURIComponent(secret), Buffer.from(secret).toString('hex'), ...encoded])];
}

/** Returns the texts that occur in the bytes, also across chunks. */
export async function foundIn(source: AsyncIterable<Uint8Array | string> | Iterable<Uint8Array | string>, texts: readonly string[]): Promise<string[]> {
  const longest = Math.max(...texts.map((text) => Buffer.byteLength(text)));
  const found = new Set<string>();
  let rest = Buffer.alloc(0);
  for await (const chunk of source) {
    const bytes = Buffer.concat([rest, Buffer.from(chunk as Uint8Array)]);
    for (const text of texts) if (bytes.includes(text)) found.add(text);
    rest = bytes.subarray(Math.max(0, bytes.length - longest + 1));
  }
  return texts.filter((text) => found.has(text));
}

/** Yields the current names and contents of all files below a folder. */
export async function* filesBelow(folder: string): AsyncGenerator<Uint8Array | string> {
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    yield `${entry.name}\n`;
    if (entry.isFile()) yield* contentOf(join(entry.parentPath, entry.name));
  }
}

/** Yields nothing if the file was deleted meanwhile. */
async function* contentOf(path: string): AsyncGenerator<Uint8Array> {
  try {
    yield* createReadStream(path) as AsyncIterable<Uint8Array>;
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
  }
}
