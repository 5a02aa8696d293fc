import { Failure, type FailureCode } from '../../../domain/failure.ts';
import { answerOfFailure } from '../response/problem.ts';

const samples: { readonly [C in FailureCode]: Failure<C> } = {
  unauthorized: new Failure('unauthorized', {}),
  forbidden: new Failure('forbidden', { action: 'start sandboxes' }),
  not_found: new Failure('not_found', {}),
  repository_not_found: new Failure('repository_not_found', { repository: 'acme/shop' }),
  repository_forbidden: new Failure('repository_forbidden', { provider: 'github', repository: 'acme/shop' }),
  repository_empty: new Failure('repository_empty', { repository: 'acme/shop', branch: 'main' }),
  branch_not_found: new Failure('branch_not_found', { repository: 'acme/shop', branch: 'next' }),
  sandbox_not_found: new Failure('sandbox_not_found', { id: 'sb-3f9k2m7x' }),
  conversation_not_found: new Failure('conversation_not_found', { id: 'conv-8d2n5q1c' }),
  permission_not_found: new Failure('permission_not_found', { id: 'perm-5h2j8v4s' }),
  file_not_found: new Failure('file_not_found', { path: '/workspace/notes.md' }),
  method_not_allowed: new Failure('method_not_allowed', { allow: ['GET', 'HEAD'] }),
  sandbox_not_running: new Failure('sandbox_not_running', { id: 'sb-3f9k2m7x', status: 'ERROR' }),
  sandbox_not_paused: new Failure('sandbox_not_paused', { id: 'sb-3f9k2m7x', status: 'ERROR' }),
  sandbox_busy: new Failure('sandbox_busy', { id: 'sb-3f9k2m7x', status: 'STARTING' }),
  conversation_not_ready: new Failure('conversation_not_ready', { id: 'conv-8d2n5q1c', reason: 'its start failed' }),
  idempotency_conflict: new Failure('idempotency_conflict', { key: 'order-4711' }),
  payload_too_large: new Failure('payload_too_large', { limitBytes: 262_144 }),
  invalid_request: new Failure('invalid_request', { problems: [{ loc: ['query', 'limit'], msg: 'must be a whole number', type: 'invalid_type' }] }),
  sandbox_limit_reached: new Failure('sandbox_limit_reached', { limit: 'running_per_owner', max: 5, retryAfterSeconds: 10 }),
  rate_limited: new Failure('rate_limited', { limit: 'requests_per_minute', retryAfterSeconds: 12 }),
  internal: new Failure('internal', { incident: 'inc-7k3p9w2d' }),
  provider_unauthorized: new Failure('provider_unauthorized', { provider: 'github' }),
  provider_failed: new Failure('provider_failed', { provider: 'github', reason: 'it answered with status 500' }),
  provider_rate_limited: new Failure('provider_rate_limited', { provider: 'github', retryAfterSeconds: 1800 }),
  provider_timeout: new Failure('provider_timeout', { provider: 'github', limitMs: 10_000 }),
  runtime_unavailable: new Failure('runtime_unavailable', { runtime: 'docker', reason: 'its engine does not answer', retryAfterSeconds: 5 }),
  runtime_timeout: new Failure('runtime_timeout', { runtime: 'docker', limitMs: 30_000 }),
  store_unavailable: new Failure('store_unavailable', { reason: 'it is locked', retryAfterSeconds: 1 }),
  shutting_down: new Failure('shutting_down', { retryAfterSeconds: 5 }),
};

/** The body by which the failure is answered, as an example for the papers. */
export function sampleBody(code: FailureCode): unknown {
  return JSON.parse(answerOfFailure(samples[code]).body ?? 'null');
}
