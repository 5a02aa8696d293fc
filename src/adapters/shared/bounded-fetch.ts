import { isFailure } from '../../domain/failure.ts';
import { readAtMost } from './node-streams.ts';
import type { ProviderFailures } from './provider-failures.ts';

/** Follows no redirect. Throws `provider_failed` or the signal's reason. Errors contain no request data, and so no credential. */
export async function fetchBounded(
  url: string, init: RequestInit & { readonly signal: AbortSignal }, maxBytes: number, failures: ProviderFailures,
) {
  try {
    const { status, headers, body } = await fetch(url, { ...init, redirect: 'manual' });
    const tooLarge = (): Error => failures.tooLarge(`${maxBytes} bytes in a response`);
    return { status, headers, body: await readAtMost(maxBytes, body ?? ReadableStream.from([]), tooLarge) };
  } catch (error) {
    init.signal.throwIfAborted();
    throw isFailure(error) ? error : networkFailure(error, failures);
  }
}

const lostConnection: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET', 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH']);
const unknownHost: ReadonlySet<string> = new Set(['ENOTFOUND', 'EAI_AGAIN']);

/** Returns the failure for an error of `fetch`, or of reading a body. */
export function networkFailure(error: unknown, { failed }: ProviderFailures): Error {
  const code = codeOf(error);
  const cause = new Error(`the request failed: ${code}`);
  if (lostConnection.has(code)) return failed({ code: 'connection_lost' }, cause);
  if (code.startsWith('HPE_')) return failed('it does not answer with HTTP', cause);
  if (unknownHost.has(code)) return failed({ code: 'host_unknown' }, cause);
  if (/CERT|SIGNATURE|ISSUER|TLS|SSL/u.test(code)) return failed({ code: 'certificate_untrusted' }, cause);
  return failed({ code: 'unreachable' }, cause);
}

/** `fetch` throws a `TypeError`. The code is in one of its causes. */
function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown';
  return 'code' in error && typeof error.code === 'string' && /^[A-Z][A-Z0-9_]*$/u.test(error.code) ? error.code : codeOf(error.cause);
}
