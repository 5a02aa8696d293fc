import { isFailure, type AnyFailure } from '../../../domain/failure.ts';
import type { CheckResult } from '../../../ports/check-result.ts';
import type { ResolvedOptions } from './options.ts';
import type { Transport } from './transport.ts';

/** Does the host answer, and take the credential? What it is asked counts against no limit. */
export async function checkGitHub(transport: Transport, options: ResolvedOptions, signal: AbortSignal): Promise<CheckResult> {
  // A GitHub Enterprise Server that has no limits says so with a 404.
  const { headers } = await transport.send({ route: 'GET /rate_limit', expects: [404] }, signal);
  const { host } = new URL(options.url);
  return { ok: true, detail: `${host} answers${limitOf(headers)}${accessOf(options)}` };
}

function limitOf(headers: Readonly<Record<string, string>>): string {
  const [remaining, limit] = [headers['x-ratelimit-remaining'], headers['x-ratelimit-limit']];
  if (remaining === undefined || limit === undefined || !/^\d{1,9}$/u.test(remaining + limit)) return '';
  return `; ${remaining} of ${limit} requests an hour are left`;
}

function accessOf({ token, app, client }: ResolvedOptions): string {
  if (token !== undefined || app !== undefined || client !== undefined) return '';
  return '; without a token it shows public repositories only, and few of them: configure one';
}

export function failedCheck(error: unknown): CheckResult {
  return { ok: false, detail: isFailure(error) ? `${error.message} ${adviceFor(error)}`.trim() : 'the check failed' };
}

function adviceFor({ code }: AnyFailure): string {
  if (code === 'provider_unauthorized') return 'It needs to read the contents and metadata of the repositories.';
  return code === 'provider_timeout' || code === 'provider_failed' ? 'Check its URL, and the network on the way there.' : '';
}
