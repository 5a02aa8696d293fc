import { jsonOrNull } from '../../shared/json.ts';
import { providerFailures } from '../../shared/provider-failures.ts';
import { type HttpResponse } from '../retrying-http-client.ts';

export const providerName = 'gitlab';

export const failures = providerFailures(providerName);
export const { failed, notFound, unauthorized, malformed, parse, tooLarge } = failures;

/** A response of the host that reports an error. Its message is matched, and shown only if it is about a merge request. */
export class ErrorResponse extends Error {
  readonly status: number;
  /** The message of GitLab's API. Null if the response has another form. */
  readonly apiMessage: string | null;

  constructor(response: HttpResponse) {
    super(`status ${response.status}`);
    this.name = 'ErrorResponse';
    this.status = response.status;
    this.apiMessage = isJson(response) ? messageIn(jsonOrNull(response.text)) : null;
  }
}

function messageIn(body: unknown): string | null {
  if (typeof body !== 'object' || body === null) return null;
  const parts = ['message' in body ? body.message : '', 'error' in body ? body.error : ''].flat();
  const message = parts.map((part) => (typeof part === 'string' ? part : JSON.stringify(part))).join(' ').trim();
  return message === '' ? null : message;
}

/** Returns true if the repository is visible, but something in it is missing. */
export function isContentMissing(error: unknown): error is ErrorResponse {
  return error instanceof ErrorResponse && error.status === 404 && error.apiMessage !== null
    && !/\b(?:project|repository)\b/iu.test(error.apiMessage);
}

/**
 * Returns the failure for an error response. A plain 403 means that the credential may not read the project's code, so it can't see the
 * repository. A 403 with a reason is about the credential itself: its scope, its address, or a blocked account.
 */
export function failureOf(response: ErrorResponse, repository: string): Error {
  const { status, apiMessage, message } = response;
  const cause = new Error(message);
  if (status === 401) return unauthorized(cause);
  if (status === 403) return /^(?:403 )?Forbidden$/iu.test(apiMessage ?? '') ? notFound(repository) : unauthorized(cause);
  if (status === 404 && apiMessage === null) return failed("its URL is not that of GitLab's API; check the configured one", cause);
  if (status === 404) return notFound(repository);
  return failures.unexpected(status, cause);
}

export function isJson({ headers }: HttpResponse): boolean {
  return /^application\/(?:[\w.+-]+\+)?json\b/iu.test(headers.get('content-type') ?? '');
}

/** For requests that name no project. A 403 then means that GitLab refused the token. Other errors are thrown unchanged. */
export function rethrowForbidden(error: unknown): never {
  throw error instanceof ErrorResponse && error.status === 403 ? unauthorized(error) : error;
}
