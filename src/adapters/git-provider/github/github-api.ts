import { createAppAuth } from '@octokit/auth-app';
import { Octokit } from '@octokit/rest';
import { z } from 'zod';
import { neverAborts } from '../../../ports/abort-signals.ts';
import type { TimeLimit } from '../../shared/timeout.ts';
import {
  createHttpClient, type HttpClient, type HttpRequest, type HttpResponse, isExhausted, isOfOrigin, rateLimitIn,
} from '../retrying-http-client.ts';
import { failed, failureOf, failures, parseResponse, refusal, ssoRequired, TooHeavy, unauthorized } from './github-failures.ts';
import type { ResolvedOptions } from './github-provider.ts';

/** A request that may be repeated: it only reads, or the caller handles an earlier success. */
export interface Call extends Pick<HttpRequest, 'acceptedStatuses' | 'maxResponseBytes'> {
  /** A method and a URL template in Octokit's form. Octokit encodes the values. */
  readonly route: string;
  readonly parameters?: Readonly<Record<string, unknown>>;
  readonly headers?: Readonly<Record<string, string>>;
  /** Follows the redirect of a renamed repository. Other redirects are failures, unless their status is accepted. */
  readonly follow?: boolean;
  /** As the header `x-ratelimit-resource` names it (GitHub's page about the rate limits of its REST API). Default: `core`. */
  readonly resource?: 'core' | 'search' | 'graphql';
}

/** How often a refused token of an App is replaced. Octokit repeats requests with a new one for some seconds. */
const refreshEveryMs = 60_000;

export type GitHubApi = ReturnType<typeof createGitHubApi>;

type FetchInit = RequestInit & { readonly headers: Record<string, string> };
type Fetch = (url: string, init: FetchInit) => Promise<Response>;

const noop = (): void => undefined;
// Octokit would write requests and deprecations to the console.
const log = { debug: noop, info: noop, warn: noop, error: noop };

/** Octokit makes the requests and authenticates them; the shared HTTP client sends them. */
export function createGitHubApi(options: ResolvedOptions, limit: TimeLimit) {
  const { clock, url: baseUrl } = options;
  const http = createHttpClient({
    ...options,
    failures,
    rateLimitOf: (response) => (isRateLimit(response) ? rateLimitIn(response.headers, 'x-ratelimit', true, clock) : null),
  });
  const octokit = createOctokit(options, http, limit);
  /** The last replacement of an App's token. */
  let refresh = { at: -Infinity, done: Promise.resolve<unknown>(null) };

  return {
    /** Throws every provider failure except `repository_not_found`. */
    async send(call: Call, signal: AbortSignal): Promise<HttpResponse> {
      const { route, parameters, headers = {}, follow = false, resource = 'core', ...policy } = call;
      const redirect = follow ? { redirectTarget: sameOriginUrl } : {};
      const sent: { response: HttpResponse | null } = { response: null };
      const sendByHttpClient: Fetch = async (url, init) => {
        // Octokit repeats the request if an App's new token is not known everywhere yet.
        sent.response = null;
        sent.response = await http.send({ ...requestOf(url, init), ...policy, ...redirect, resource }, signal);
        return toFetchResponse(sent.response);
      };
      const request = { fetch: sendByHttpClient, signal, redirect: 'manual' as const, parseSuccessResponseBody: false };
      const ask = async (): Promise<HttpResponse | null> => {
        try {
          await octokit.request(route, { baseUrl, ...parameters, headers: { ...headers }, request });
        } catch (error) {
          signal.throwIfAborted();
          // Octokit throws for most statuses. Its error contains the credential, so it is not passed on.
          if (sent.response === null) throw failureOf(error);
        }
        return sent.response;
      };
      const begunAt = clock.now();
      const response = await ask();
      if (options.app === undefined || response?.status !== 401) return accept(response, policy.acceptedStatuses);
      // The token can be revoked before it expires. Requests that were sent before the replacement share it.
      const now = clock.now();
      // After a jump of the time to an earlier one, the last replacement does not delay the next.
      const mayRefresh = refresh.at < begunAt - refreshEveryMs || refresh.at > now;
      if (mayRefresh) refresh = { at: now, done: authenticate(octokit, neverAborts, true) };
      else if (refresh.at < begunAt) return accept(response, policy.acceptedStatuses);
      await refresh.done;
      return accept(await ask(), policy.acceptedStatuses);
    },
    /** Stops the requests of the rate limit of a GraphQL response until it is over, and returns the failure for it. */
    rateLimited({ headers }: HttpResponse): Error {
      const rateLimit = rateLimitIn(headers, 'x-ratelimit', true, clock);
      http.pauseFor(rateLimit);
      return failures.rateLimited(rateLimit.waitMs);
    },
    /** Returns the token that git may use. Null if there is no credential. */
    async gitToken(signal: AbortSignal): Promise<string | null> {
      return Token.safeParse(await authenticate(octokit, signal)).data?.token ?? null;
    },
  };
}

/** Returns the authentication of an App's installation or of the token. `refresh`: gets a new token for the installation. */
async function authenticate(octokit: Octokit, signal: AbortSignal, refresh = false): Promise<unknown> {
  try {
    return await octokit.auth({ type: 'installation', refresh });
  } catch (error) {
    signal.throwIfAborted();
    throw failureOf(error);
  }
}

function createOctokit({ url, token, app }: ResolvedOptions, http: HttpClient, limit: TimeLimit): Octokit {
  // Used for the requests by which an App gets its token.
  const fetchToken: Fetch = async (target, init) =>
    toFetchResponse(await limit.run(undefined, (signal) => http.send(requestOf(target, init), signal)));
  const common = { baseUrl: url, userAgent: 'skep', log, request: { redirect: 'manual' as const, log, fetch: fetchToken } };
  if (app !== undefined) return new Octokit({ ...common, authStrategy: createAppAuth, auth: { ...app, log } });
  return new Octokit(token === undefined ? common : { ...common, auth: token });
}

function requestOf(url: string, { method, headers, body }: FetchInit) {
  return { url: new URL(url), method: method ?? 'GET', headers, ...(typeof body === 'string' && { body }) };
}

function toFetchResponse({ status, headers, text }: HttpResponse): Response {
  const hasBody = ![204, 205, 304].includes(status);
  return new Response(hasBody ? text : null, { status, headers });
}

function accept(response: HttpResponse | null, acceptedStatuses: readonly number[] = []): HttpResponse {
  if (response === null) throw failed({ code: 'unreachable' });
  const { status, headers } = response;
  if ((status >= 200 && status < 300) || acceptedStatuses.includes(status)) return response;
  throw refusal(status, headers);
}

const Token = z.object({ token: z.string().min(1) });

function isRateLimit({ status, headers, text }: HttpResponse): boolean {
  if (status === 429) return true;
  if (status !== 403) return false;
  return isExhausted(headers, 'x-ratelimit') || headers.has('retry-after') || /rate limit|abuse/iu.test(text);
}

/** Returns the target URL. Throws if it has another origin, because that must not get the credential. */
export function sameOriginUrl(target: string, from: URL): URL {
  const url = target === '' ? null : URL.parse(target, from);
  if (url === null || !isOfOrigin(url, from.origin)) throw failed('it leads to another origin, which is not followed');
  return url;
}

export interface GraphqlQuery {
  readonly text: string;
  /** All external values go in here, never into the text. */
  readonly variables: Readonly<Record<string, unknown>>;
  /** The subject of the answer, for failure messages. */
  readonly what: string;
}

export type AskGraphql = ReturnType<typeof createAskGraphql>;

const GraphqlErrors = z.array(z.object({
  type: z.string().optional(),
  message: z.string(),
  path: z.array(z.unknown()).optional(),
  extensions: z.object({ saml_failure: z.boolean().optional() }).optional(),
}));
export type GraphqlErrors = z.infer<typeof GraphqlErrors>;

const GraphqlResponse = z.object({ data: z.unknown().optional(), errors: GraphqlErrors.optional() });

// The query took the host too long. A smaller query is better than a retry.
const heavyStatuses: readonly number[] = [502, 504];
const rateLimitTypes: ReadonlySet<string | undefined> = new Set(['RATE_LIMITED', 'RATE_LIMIT']);
const heavyTypes: ReadonlySet<string | undefined> = new Set(['RESOURCE_LIMITS_EXCEEDED', 'MAX_NODE_LIMIT_EXCEEDED']);
const forbiddenTypes: ReadonlySet<string | undefined> = new Set(['FORBIDDEN', 'INSUFFICIENT_SCOPES']);

/** The caller must handle the errors in the result. Throws a {@link TooHeavy} if a smaller query may succeed. */
export function createAskGraphql(api: GitHubApi, url: string) {
  return async ({ text, variables, what }: GraphqlQuery, signal: AbortSignal): Promise<{ data: unknown; errors: GraphqlErrors }> => {
    const parameters = { query: text, variables };
    const response = await api.send({ route: `POST ${url}`, parameters, resource: 'graphql', acceptedStatuses: heavyStatuses }, signal);
    if (heavyStatuses.includes(response.status)) throw new TooHeavy(response.status);
    const { data, errors = [] } = parseResponse(GraphqlResponse, response.text, what);
    // Its documentation names no type for the secondary limit.
    const isLimited = errors.some(({ type, message }) => rateLimitTypes.has(type) || /secondary rate limit/iu.test(message));
    if (isLimited) throw api.rateLimited(response);
    if (errors.some(({ type, message }) => heavyTypes.has(type) || isTimeoutMessage(type, message))) throw new TooHeavy();
    if (errors.some(({ extensions }) => extensions?.saml_failure === true)) throw ssoRequired(response.headers);
    if (errors.some(({ type }) => forbiddenTypes.has(type))) throw unauthorized();
    return { data, errors };
  };
}

/** Matches GitHub's messages for a query that took too long. These errors have no type. */
function isTimeoutMessage(type: string | undefined, message: string): boolean {
  return type === undefined && /something went wrong|timed? ?out|couldn't respond/iu.test(message);
}
