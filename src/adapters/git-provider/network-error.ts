import type { Failure } from '../../domain/failure.ts';
import type { providerFailures } from '../shared/provider-failures.ts';

export type ProviderFailures = ReturnType<typeof providerFailures>;

/** There is no response, or not all of it. Holds nothing of the request, which has the credential in it. */
export interface NetworkError {
  readonly failure: Failure;
  /** The connection was lost; another one may do better. */
  readonly retryable: boolean;
}

const lostConnection: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET', 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH']);
const unknownHost: ReadonlySet<string> = new Set(['ENOTFOUND', 'EAI_AGAIN']);

/** Reads what `fetch`, or the reading of a body, threw. */
export function networkErrorOf(error: unknown, { down, failed }: ProviderFailures): NetworkError {
  const code = codeOf(error);
  const cause = new Error(code === null ? 'the request failed' : `the request failed: ${code}`);
  if (code === null) return permanent(down('the request failed', cause));
  if (lostConnection.has(code)) return { failure: down({ code: 'connection_lost' }, cause), retryable: true };
  if (code.startsWith('HPE_')) return permanent(failed('it does not answer with HTTP', cause));
  if (unknownHost.has(code)) return permanent(down({ code: 'host_unknown' }, cause));
  if (/CERT|SIGNATURE|ISSUER|TLS|SSL/u.test(code)) return permanent(failed({ code: 'certificate_untrusted' }, cause));
  return permanent(down({ code: 'unreachable' }, cause));
}

function permanent(failure: Failure): NetworkError {
  return { failure, retryable: false };
}

/** The error, its causes and the errors that they collect. */
export function errorChain(error: unknown): Error[] {
  const chain: Error[] = [];
  for (let each = error; each instanceof Error && chain.length < 8; each = each.cause) {
    chain.push(each);
    if (each instanceof AggregateError) chain.push(...each.errors.filter((inner) => inner instanceof Error));
  }
  return chain;
}

function codeOf(error: unknown): string | null {
  for (const each of errorChain(error)) {
    if ('code' in each && typeof each.code === 'string' && /^[A-Z][A-Z0-9_]*$/u.test(each.code)) return each.code;
  }
  return null;
}
