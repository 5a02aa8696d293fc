import type { ProbeMiss } from '../../../domain/readiness.ts';

type Reading = readonly [codes: RegExp, reason: string];

const closed = 'the connection was closed without an answer';

/** A proxy in front of the sandbox takes the connection and lets go of it where nobody listens behind. */
export const closedUnanswered: ProbeMiss = { kind: 'failed', reason: closed };

const readings: readonly Reading[] = [
  [/^(?:ECONNRESET|EPIPE)$/u, closed],
  [/^(?:ENOTFOUND|EAI_AGAIN)$/u, 'the name of its host can not be resolved'],
  [/^(?:EHOSTUNREACH|ENETUNREACH|ETIMEDOUT|EADDRNOTAVAIL)$/u, 'its host can not be reached'],
  [/^HPE_/u, 'what it answered is not HTTP'],
  [/CERT|SIGNATURE|ISSUER|TLS|SSL|EPROTO/u, 'its certificate or its TLS is not accepted'],
];

/** What an error of a connection means. */
export function missOf(error: Error, withinMs: number): ProbeMiss {
  if (error.name === 'AbortError') return { kind: 'silent', withinMs };
  const code = 'code' in error && typeof error.code === 'string' ? error.code : 'without a code';
  if (code === 'ECONNREFUSED') return { kind: 'refused' };
  return { kind: 'failed', reason: readings.find(([codes]) => codes.test(code))?.[1] ?? `the connection failed (${code})` };
}
