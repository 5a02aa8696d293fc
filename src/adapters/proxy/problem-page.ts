import { type IncomingMessage, STATUS_CODES } from 'node:http';
import { type AnyProblem, detailOf, type ProblemCode, responseTo } from '../http/problems.ts';
import { headerOf } from '../http/request-input.ts';

/** A response that is sent at once. */
export interface WholeResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Returns true if a person will read the response, because a browser navigates. Requests by a page get JSON. */
export function isForPerson(request: IncomingMessage): boolean {
  const mode = headerOf(request, 'sec-fetch-mode');
  return mode === null ? /\btext\/html\b/.test(headerOf(request, 'accept') ?? '') : mode === 'navigate';
}

/** Returns the response to a problem: a page for a person, problem details for a program. */
export function responseFor(request: IncomingMessage, problem: AnyProblem): WholeResponse {
  const detail = ownDetails[problem.code] ?? detailOf(problem);
  const { status, body, headers } = responseTo(problem, detail);
  const common = { 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff', Vary: 'Accept, Sec-Fetch-Mode' };
  if (!isForPerson(request)) return { status, body, headers: { ...headers, ...common } };
  const page = pageOf(`${status} ${STATUS_CODES[status] ?? ''}`.trim(), detail);
  const ofPage = { 'Content-Type': 'text/html; charset=utf-8', 'Content-Security-Policy': "default-src 'none'; frame-ancestors 'self'" };
  return { status, body: page, headers: { ...headers, ...common, ...ofPage } };
}

/** Details that the API words differently. */
const ownDetails: Readonly<Partial<Record<ProblemCode, string>>> = {
  unauthorized: 'This port needs a valid link or API key. It is missing, expired or revoked. Create a new link: skep open SANDBOX PORT',
  not_found: 'This address names no port of a sandbox. Use one of its exposed_urls, or create a link: skep open SANDBOX PORT',
};

function pageOf(title: string, text: string): string {
  const [shownTitle, shownText] = [escapeHtml(title), escapeHtml(text)];
  return `<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<meta name="viewport" content="width=device-width">\n`
    + `<title>${shownTitle}</title>\n<h1>${shownTitle}</h1>\n<p>${shownText}</p>\n</html>\n`;
}

const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => entities[character] ?? '');
}
