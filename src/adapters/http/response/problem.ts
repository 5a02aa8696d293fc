import { STATUS_CODES } from 'node:http';
import type { AnyFailure } from '../../../domain/failure.ts';
import type { Answer } from './answer.ts';
import { failureStatus, membersOf } from './failure-table.ts';

/** A failure as an answer: problem details as of RFC 9457, or the list of what is wrong with the request. */
export function answerOfFailure(failure: AnyFailure): Answer {
  if (failure.code === 'invalid_request') {
    const detail = failure.context.problems.map(({ loc, msg, type }) => ({ loc, msg, type }));
    return { status: failureStatus.invalid_request, body: JSON.stringify({ detail }), media: 'application/json; charset=utf-8', headers: {} };
  }
  const status = failureStatus[failure.code];
  const retryAfter = retryAfterOf(failure);
  const body = {
    type: 'about:blank',
    title: STATUS_CODES[status] ?? 'Failure',
    status,
    detail: failure.message,
    code: failure.code,
    ...membersOf(failure),
    ...(retryAfter !== null && { retry_after_seconds: retryAfter }),
  };
  return { status, body: JSON.stringify(body), media: 'application/problem+json; charset=utf-8', headers: headersOf(failure, retryAfter) };
}

function retryAfterOf({ context }: AnyFailure): number | null {
  return 'retryAfterSeconds' in context ? Math.max(1, Math.ceil(context.retryAfterSeconds)) : null;
}

function headersOf(failure: AnyFailure, retryAfter: number | null): Record<string, string> {
  const headers: Record<string, string> = {};
  if (retryAfter !== null) headers['Retry-After'] = String(retryAfter);
  if (failure.code === 'unauthorized') headers['WWW-Authenticate'] = 'ApiKey';
  if (failure.code === 'method_not_allowed') headers['Allow'] = failure.context.allow.join(', ');
  if (failure.code === 'payload_too_large' || failure.code === 'shutting_down') headers['Connection'] = 'close';
  return headers;
}
