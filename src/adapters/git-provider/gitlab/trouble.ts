import type { Failure } from '../../../domain/failure.ts';
import { down, failed } from './failures.ts';

/** Why there was no answer, or not all of it. Holds nothing of the request, which has the credential in it. */
export interface Trouble {
  readonly failure: Failure;
  /** Was the connection lost, so that another may do better? */
  readonly passing: boolean;
}

const lost: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET', 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH']);
const unknownHost: ReadonlySet<string> = new Set(['ENOTFOUND', 'EAI_AGAIN']);

/** Reads what fetch threw. */
export function troubleOf(error: unknown): Trouble {
  const code = codeOf(error);
  const cause = new Error(code === null ? 'the request failed' : `the request failed: ${code}`);
  if (code === null) return { failure: down('the request failed', cause), passing: false };
  if (lost.has(code)) return { failure: down('the connection broke off', cause), passing: true };
  if (code.startsWith('HPE_')) return { failure: failed('it does not answer with HTTP', cause), passing: false };
  if (unknownHost.has(code)) return { failure: down("the name of its host can't be resolved", cause), passing: false };
  if (/CERT|SIGNATURE|ISSUER|TLS|SSL/u.test(code)) return { failure: failed('its certificate is not trusted', cause), passing: false };
  return { failure: down("it can't be reached", cause), passing: false };
}

function codeOf(error: unknown): string | null {
  let each = error;
  for (let depth = 0; each instanceof Error && depth < 8; depth += 1) {
    if ('code' in each && typeof each.code === 'string' && /^[A-Z][A-Z0-9_]*$/u.test(each.code)) return each.code;
    each = each instanceof AggregateError ? each.errors[0] : each.cause;
  }
  return null;
}
