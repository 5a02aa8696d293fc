import type { ProbeMiss } from '../../../domain/readiness.ts';

/** A proxy in front of the sandbox accepts the connection and closes it if nobody listens behind. */
export const closedUnanswered: ProbeMiss = { kind: 'closed' };

const misses: readonly (readonly [codes: RegExp, miss: ProbeMiss])[] = [
  [/^ECONNREFUSED$/u, { kind: 'refused' }],
  [/^(?:ECONNRESET|EPIPE)$/u, closedUnanswered],
  [/^(?:ENOTFOUND|EAI_AGAIN)$/u, { kind: 'host_unknown' }],
  [/^(?:EHOSTUNREACH|ENETUNREACH|ETIMEDOUT|EADDRNOTAVAIL)$/u, { kind: 'host_unreachable' }],
  [/^HPE_/u, { kind: 'malformed' }],
  [/CERT|SIGNATURE|ISSUER|TLS|SSL|EPROTO/u, { kind: 'certificate_refused' }],
];

/** Returns what an error of a connection means. */
export function missOf(error: Error, withinMs: number): ProbeMiss {
  if (error.name === 'AbortError') return { kind: 'silent', withinMs };
  const errorCode = 'code' in error && typeof error.code === 'string' ? error.code : null;
  return misses.find(([codes]) => errorCode !== null && codes.test(errorCode))?.[1] ?? { kind: 'failed', errorCode };
}
