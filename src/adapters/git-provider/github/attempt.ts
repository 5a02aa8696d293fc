import type { Answer } from './answer.ts';
import { discardBody, readBody } from './body.ts';
import type { Call } from './transport.ts';
import { troubleOf, type Trouble } from './trouble.ts';

export interface AttemptOptions {
  /** The URL of the REST API. */
  readonly baseUrl: string;
  readonly maxAnswerBytes: number;
}

/** What makes the requests: an Octokit client, or what behaves like one. */
export interface Requester {
  request(route: string, parameters: Record<string, unknown>): Promise<Response>;
}

/**
 * Makes a request once. What the client throws holds the request and its credential, so that nothing of it goes further
 * than this.
 */
export async function attempt(
  client: Requester,
  { route, parameters, headers }: Call,
  { baseUrl, maxAnswerBytes }: AttemptOptions,
  signal: AbortSignal,
): Promise<Answer | Trouble> {
  try {
    const response = await client.request(route, {
      baseUrl,
      ...parameters,
      headers: { ...headers },
      // Octokit takes a body that breaks off for an empty one, and follows redirects to wherever they lead.
      request: { signal, redirect: 'manual', parseSuccessResponseBody: false },
    });
    const answer = { status: response.status, headers: textHeaders(response.headers), text: '', message: '' };
    if (response.status < 300) return { ...answer, text: await readBody(response.data, maxAnswerBytes) };
    await discardBody(response.data);
    return answer;
  } catch (error) {
    signal.throwIfAborted();
    return refusalOf(error) ?? troubleOf(error, maxAnswerBytes);
  }
}

interface Response {
  readonly status: number;
  readonly headers: object;
  readonly data: unknown;
}

const tokenPath = /\/app\/installations\/[^/]*\/access_tokens$/u;

/** The host's answer that the client threw; null where there was none. */
function refusalOf(error: unknown): Answer | null {
  if (!(error instanceof Error) || !('response' in error) || !isResponse(error.response)) return null;
  const { status, headers, data } = error.response;
  const answer = { status, headers: textHeaders(headers), text: null, message: messageOf(data) };
  // A host that does not know the App's installation refuses the credential, not what the request was about.
  return isAboutToken(error) && (status === 404 || status === 422) ? { ...answer, status: 401 } : answer;
}

function isResponse(response: unknown): response is Response {
  return typeof response === 'object' && response !== null && 'status' in response && 'headers' in response && 'data' in response;
}

function isAboutToken(error: Error): boolean {
  if (!('request' in error) || typeof error.request !== 'object' || error.request === null) return false;
  return 'url' in error.request && typeof error.request.url === 'string' && tokenPath.test(error.request.url);
}

function messageOf(data: unknown): string {
  if (typeof data === 'string') return data;
  if (typeof data !== 'object' || data === null || !('message' in data)) return '';
  return typeof data.message === 'string' ? data.message : '';
}

function textHeaders(headers: object): Record<string, string> {
  const texts = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), String(value)] as const);
  return Object.fromEntries(texts);
}
