import { isJson, type Answer } from './answer.ts';
import { down, failed, notFound, unauthorized } from './failures.ts';
import { jsonOrNull } from './json.ts';

/** An answer that is no success. Its words are matched, and never shown. */
export class Refusal extends Error {
  readonly status: number;
  /** What GitLab's API says; null where the answer is not of the form that it has. */
  readonly words: string | null;

  constructor(answer: Answer) {
    super(`status ${answer.status}`);
    this.name = 'Refusal';
    this.status = answer.status;
    this.words = isJson(answer) ? wordsOf(answer.text) : null;
  }
}

function wordsOf(text: string): string | null {
  const body = jsonOrNull(text);
  if (typeof body !== 'object' || body === null) return null;
  const parts = ['message' in body ? body.message : '', 'error' in body ? body.error : ''];
  const words = parts.map((part) => (typeof part === 'string' ? part : JSON.stringify(part))).join(' ').trim();
  return words === '' ? null : words;
}

/** Does it say that there is no project, at least none that the credential can see? */
export function isOfProject({ status, words }: Refusal): boolean {
  return status === 404 && words !== null && /\bproject\b/iu.test(words);
}

/** Does it say that something inside the project is not there? */
export function isOfContent(refusal: Refusal): boolean {
  return refusal.status === 404 && refusal.words !== null && !isOfProject(refusal);
}

/** Does it say that a directory of the repository is not there, and not the repository itself? */
export function isOfDirectory(refusal: Refusal): boolean {
  return isOfContent(refusal) && !/\brepository\b/iu.test(refusal.words ?? '');
}

/**
 * The failure that an answer about a repository means.
 *
 * A plain 403 is what a project answers whose code the credential may not read: that is a repository which it can't see.
 * A 403 with a reason is about the credential itself: its scope, its address, an account that is blocked.
 */
export function failureOf(refusal: Refusal, repository: string): Error {
  const { status, words, message } = refusal;
  const cause = new Error(message);
  if (status === 401) return unauthorized(cause);
  if (status === 403) return words !== null && /^(?:403 )?Forbidden$/iu.test(words) ? notFound(repository) : unauthorized(cause);
  if (status === 404 && words !== null) return notFound(repository);
  if (status === 404) return failed("its URL is not that of GitLab's API; check the configured one", cause);
  if (status >= 500) return down(`it answered with status ${status}`, cause);
  return failed(`it answered with status ${status}, which was not expected`, cause);
}
