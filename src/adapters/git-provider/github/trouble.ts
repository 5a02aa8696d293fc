import { down, failed, tooLarge, unauthorized } from './failures.ts';
import { TooLargeBody } from './body.ts';
import type { Failure } from '../../../domain/failure.ts';

/** Why there was no answer, or not all of it. Holds nothing of the request, which has the credential in it. */
export interface Trouble {
  readonly failure: Failure;
  /** Was the connection lost, so that another may do better? */
  readonly passing: boolean;
}

const lost: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET', 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH']);
const unknownHost: ReadonlySet<string> = new Set(['ENOTFOUND', 'EAI_AGAIN']);

/** Reads an error of the client that came with no status of the host. */
export function troubleOf(error: unknown, maxBytes: number): Trouble {
  if (chainOf(error).some((each) => each instanceof TooLargeBody)) {
    return { failure: tooLarge(`${maxBytes} bytes in an answer`), passing: false };
  }
  const code = codeOf(error);
  const cause = new Error(code === null ? 'the request failed' : `the request failed: ${code}`);
  if (!isOfFetch(error)) return { failure: unauthorized(cause), passing: false };
  if (code === null) return { failure: down('the request failed', cause), passing: false };
  if (lost.has(code)) return { failure: down('the connection broke off', cause), passing: true };
  if (unknownHost.has(code)) return { failure: down("the name of its host can't be resolved", cause), passing: false };
  if (/CERT|SIGNATURE|ISSUER|TLS|SSL/u.test(code)) return { failure: failed('its certificate is not trusted', cause), passing: false };
  return { failure: down("it can't be reached", cause), passing: false };
}

/** Whatever fetch, or a body, throws is a `TypeError`; another error is one of making a credential, as with a bad key. */
function isOfFetch(error: unknown): boolean {
  return chainOf(error).some((each) => each instanceof TypeError);
}

function codeOf(error: unknown): string | null {
  for (const each of chainOf(error)) {
    if ('code' in each && typeof each.code === 'string' && /^[A-Z][A-Z0-9_]*$/u.test(each.code)) return each.code;
  }
  return null;
}

function chainOf(error: unknown): Error[] {
  const chain: Error[] = [];
  for (let each = error; each instanceof Error && chain.length < 8; each = each.cause) {
    chain.push(each);
    if (each instanceof AggregateError) chain.push(...each.errors.filter((inner) => inner instanceof Error));
  }
  return chain;
}
