import { z } from 'zod';
import { Failure, isFailure } from '../../../domain/failure.ts';
import { explained } from '../../../domain/reason.ts';
import { networkFailure } from '../../shared/bounded-fetch.ts';
import { jsonOrNull } from '../../shared/json.ts';
import { providerFailures } from '../../shared/provider-failures.ts';

export const providerName = 'github';

export const failures = providerFailures(providerName);
export const { failed, notFound, unauthorized, malformed, parse, tooLarge } = failures;

/** Parses a response in JSON. Throws `provider_failed` if it does not match the documented schema. */
export function parseResponse<T>(schema: z.ZodType<T>, text: string, what: string): T {
  return parse(schema, jsonOrNull(text), what);
}

/** The host gave up on a query. A smaller query may succeed. */
export class TooHeavy extends Failure<'provider_failed'> {
  /** The status is null if GitHub reported this in the body of its answer. */
  constructor(status: number | null = null) {
    const reason = status === null ? explained('a query took it too long') : ({ code: 'server_error', status } as const);
    super('provider_failed', { provider: providerName, reason });
  }
}

/** A 403 without a rate limit means a missing permission of the credential, not a missing repository. Only its administrator can add it. */
export function refusal(status: number, headers = new Headers()): Error {
  const cause = new Error(`status ${status}`);
  const isSsoRequired = status === 403 && ssoHeader.test(headers.get('x-github-sso') ?? '');
  if (isSsoRequired) return ssoRequired(headers);
  if (status === 401 || status === 403) return unauthorized(cause);
  if (status === 451) return failed('the repository is blocked for legal reasons', cause);
  return failures.unexpected(status, cause);
}

// `required; url=https://github.com/orgs/acme/sso?authorization_request=...`, as on GitHub's page about troubleshooting its REST API.
const ssoHeader = /^required\b(?:.*?\burl=(?<url>https?:\/\/[\u0021-\u007e]{1,500})$)?/u;

/** The token is not authorised for an organisation that requires single sign-on. The URL is in a header, also with GraphQL. */
export function ssoRequired(headers: Headers): Error {
  return failures.ssoRequired(ssoHeader.exec(headers.get('x-github-sso') ?? '')?.groups?.['url'] ?? null);
}

/** Converts an error that Octokit threw before the request itself got a response. */
export function failureOf(error: unknown): Error {
  const refused = Refused.safeParse(error);
  // GitHub refused a token for the App. It returns 404 or 422 if it does not know the installation.
  if (refused.success) return [404, 422].includes(refused.data.response.status) ? unauthorized() : refusal(refused.data.response.status);
  for (let each = error; each instanceof Error; each = each.cause) {
    if (isFailure(each)) return each;
    // `fetch` throws a `TypeError`. Any other error is about creating a credential, for example a bad key.
    if (each instanceof TypeError) return networkFailure(each, failures);
  }
  return unauthorized();
}

const Refused = z.object({ response: z.object({ status: z.int() }) });
