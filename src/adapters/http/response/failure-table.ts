import type { AnyFailure, Failure, FailureCode, FailureContexts } from '../../../domain/failure.ts';

/** The HTTP status of each failure. */
export const failureStatus: { readonly [C in FailureCode]: number } = {
  unauthorized: 401,
  forbidden: 403,
  not_found: 404,
  repository_not_found: 404,
  branch_not_found: 404,
  sandbox_not_found: 404,
  conversation_not_found: 404,
  permission_not_found: 404,
  file_not_found: 404,
  method_not_allowed: 405,
  repository_empty: 409,
  sandbox_not_running: 409,
  sandbox_not_paused: 409,
  sandbox_busy: 409,
  conversation_not_ready: 409,
  idempotency_conflict: 409,
  payload_too_large: 413,
  invalid_request: 422,
  sandbox_limit_reached: 429,
  rate_limited: 429,
  internal: 500,
  repository_forbidden: 502,
  provider_unauthorized: 502,
  provider_failed: 502,
  provider_rate_limited: 503,
  runtime_unavailable: 503,
  store_unavailable: 503,
  shutting_down: 503,
  provider_timeout: 504,
  runtime_timeout: 504,
};

type Members = { readonly [C in FailureCode]: (context: FailureContexts[C]) => Readonly<Record<string, unknown>> };

const none = () => ({});
const aboutSandbox = ({ id, status }: FailureContexts['sandbox_busy']) => ({ sandbox_id: id, sandbox_status: status });
const aboutTimeout = (part: 'provider' | 'runtime', name: string, limitMs: number) => ({ [part]: name, limit_ms: limitMs });

/**
 * The members by which the problem details of each failure say more. RFC 9457 keeps `status` for the number of the HTTP
 * status, so a sandbox's own status is `sandbox_status`.
 */
const failureMembers: Members = {
  unauthorized: none,
  forbidden: none,
  not_found: none,
  repository_not_found: ({ repository }) => ({ repository }),
  repository_forbidden: ({ provider, repository }) => ({ provider, repository }),
  repository_empty: ({ repository, branch }) => ({ repository, branch }),
  branch_not_found: ({ repository, branch }) => ({ repository, branch }),
  sandbox_not_found: ({ id }) => ({ sandbox_id: id }),
  conversation_not_found: ({ id }) => ({ conversation_id: id }),
  permission_not_found: ({ id }) => ({ permission_id: id }),
  file_not_found: ({ path }) => ({ path }),
  method_not_allowed: ({ allow }) => ({ allow }),
  sandbox_not_running: aboutSandbox,
  sandbox_not_paused: aboutSandbox,
  sandbox_busy: aboutSandbox,
  conversation_not_ready: ({ id }) => ({ conversation_id: id }),
  idempotency_conflict: ({ key }) => ({ key }),
  payload_too_large: ({ limitBytes }) => ({ limit_bytes: limitBytes }),
  invalid_request: none,
  sandbox_limit_reached: ({ limit, max }) => ({ limit, max }),
  rate_limited: ({ limit }) => ({ limit }),
  internal: ({ incident }) => ({ incident }),
  provider_unauthorized: ({ provider }) => ({ provider }),
  provider_failed: ({ provider }) => ({ provider }),
  provider_rate_limited: ({ provider }) => ({ provider }),
  runtime_unavailable: ({ runtime }) => ({ runtime }),
  store_unavailable: none,
  shutting_down: none,
  provider_timeout: ({ provider, limitMs }) => aboutTimeout('provider', provider, limitMs),
  runtime_timeout: ({ runtime, limitMs }) => aboutTimeout('runtime', runtime, limitMs),
};

export function membersOf<C extends FailureCode>({ code, context }: Failure<C>): Readonly<Record<string, unknown>> {
  return failureMembers[code](context);
}

/** Is it a failure that this table knows? A newer copy of the package may throw others. */
export function isListed(failure: AnyFailure): boolean {
  return Object.hasOwn(failureStatus, failure.code);
}
