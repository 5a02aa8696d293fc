import { providerFailures } from '../../shared/provider-failures.ts';
import { jsonOrNull } from '../host-answers.ts';
import { type HttpResponse } from '../retrying-http-client.ts';

export const providerName = 'gitlab';

export const failures = providerFailures(providerName);
export const { failed, notFound, unauthorized, malformed, parse, tooLarge } = failures;

/** A response that is no success. Its message is matched, and never shown. */
export class Refusal extends Error {
  readonly status: number;
  /** What GitLab's API says. Null if the response is not of its form. */
  readonly apiMessage: string | null;

  constructor(response: HttpResponse) {
    super(`status ${response.status}`);
    this.name = 'Refusal';
    this.status = response.status;
    this.apiMessage = isJson(response) ? messageIn(jsonOrNull(response.text)) : null;
  }
}

function messageIn(body: unknown): string | null {
  if (typeof body !== 'object' || body === null) return null;
  const parts = ['message' in body ? body.message : '', 'error' in body ? body.error : ''];
  const message = parts.map((part) => (typeof part === 'string' ? part : JSON.stringify(part))).join(' ').trim();
  return message === '' ? null : message;
}

/** There is a project that the credential can see, but something inside it is missing. */
export function isOfContent(error: unknown): error is Refusal {
  return error instanceof Refusal && error.status === 404 && error.apiMessage !== null && !/\bproject\b/iu.test(error.apiMessage);
}

/** There is a repository, but a directory of it is missing. */
export function isOfDirectory(error: unknown): error is Refusal {
  return isOfContent(error) && !/\brepository\b/iu.test(error.apiMessage ?? '');
}

/**
 * The failure that a refusal means.
 *
 * A plain 403 means that the credential may not read the project's code: that is a repository which it can't see. A 403
 * with a reason is about the credential itself: its scope, its address, an account that is blocked.
 */
export function failureOf(refusal: Refusal, repository: string): Error {
  const { status, apiMessage, message } = refusal;
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

/** What is about no project is refused because of the token. */
export function unlessForbidden(error: unknown): never {
  throw error instanceof Refusal && error.status === 403 ? unauthorized(error) : error;
}
