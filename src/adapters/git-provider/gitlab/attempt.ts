import type { Answer } from './answer.ts';
import { tooLarge } from './failures.ts';
import { troubleOf, type Trouble } from './trouble.ts';

export interface AttemptOptions {
  readonly headers: Readonly<Record<string, string>>;
  readonly maxAnswerBytes: number;
}

/**
 * Makes a request once; follows no redirect. Rejects with the signal's reason only. What fetch throws is not passed on,
 * since it may show what was sent.
 */
export async function attempt(url: URL, options: AttemptOptions, signal: AbortSignal): Promise<Answer | Trouble> {
  try {
    const response = await fetch(url, {
      headers: { accept: 'application/json', 'user-agent': 'skep', ...options.headers },
      redirect: 'manual',
      signal,
    });
    return await read(response, options.maxAnswerBytes);
  } catch (error) {
    signal.throwIfAborted();
    return troubleOf(error);
  }
}

async function read({ status, headers, body }: Response, maxBytes: number): Promise<Answer | Trouble> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > maxBytes) return { failure: tooLarge(`${maxBytes} bytes in an answer`), passing: false };
    chunks.push(chunk);
  }
  return { status, headers, text: Buffer.concat(chunks).toString('utf8') };
}
