import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { once } from 'node:events';
import { authenticate, installationToken, type Access } from './access.ts';
import { readRequest, refusal, send, type DoubleRequest, type DoubleResponse, type Recorded } from './request.ts';
import { answerGraphql } from './graphql/execute.ts';
import { usualBehavior, type GraphqlBehavior } from './graphql/history.ts';
import { createFaults, type Faults } from './faults.ts';
import { githubDescription } from './rest/openapi.ts';
import { searchOperation, searchRepositories } from './rest/repositories.ts';
import { findRoute, locate } from './rest/routes.ts';
import { createPullRequests, type PullRequests } from './pull-requests.ts';
import { createHostedRepositories, type HostedRepositories } from '../hosted-repositories.ts';

export interface DoubleOptions {
  /** The delay before every response, in milliseconds. */
  readonly delayMs?: number;
  /** `/api/v3`, as on a GitHub Enterprise Server. */
  readonly prefix?: '' | '/api/v3';
}

/** A GitHub on loopback. It serves real git repositories and refuses what GitHub refuses. */
export interface GitHubDouble {
  readonly url: string;
  readonly repositories: HostedRepositories;
  readonly pullRequests: PullRequests;
  readonly access: Access;
  readonly faults: Faults;
  readonly graphql: GraphqlBehavior;
  /** The requests, in order. */
  readonly requests: readonly Recorded[];
  /** Responses with more entries are cut off. */
  treeLimit: number | null;
  forget(): void;
  /** Rejects if there was a request that GitHub does not know. */
  close(): Promise<void>;
}

export const doubleToken = 'ghp_doubleSecretToken0123456789';

export async function startGitHubDouble({ delayMs = 0, prefix = '' }: DoubleOptions = {}): Promise<GitHubDouble> {
  const problems: string[] = [];
  const requests: Recorded[] = [];
  const access: Access = { tokens: new Set([doubleToken]), app: null };
  const server = createServer((message, response) => void exchange(message, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the double listens nowhere');
  const double: GitHubDouble = {
    url: `http://127.0.0.1:${address.port}${prefix}`,
    repositories: createHostedRepositories('public'),
    pullRequests: createPullRequests(),
    access,
    faults: createFaults(),
    graphql: usualBehavior(),
    requests,
    treeLimit: null,
    forget: () => void requests.splice(0),
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
      if (problems.length > 0) throw new Error(`GitHub would not have understood: ${problems.join('; ')}`);
    },
  };

  async function exchange(message: IncomingMessage, response: ServerResponse): Promise<void> {
    // A client may disconnect during a request.
    response.on('error', () => undefined);
    try {
      const request = await readRequest(message, prefix);
      const recorded: Recorded = { ...request, at: performance.now(), status: null };
      requests.push(recorded);
      const [fault, answer] = await afterDelay(() => double.faults.next(request) ?? answerTo(request));
      recorded.status = answer?.status ?? null;
      if (answer === null) fault?.(response, request);
      else send(response, answer);
    } catch (error) {
      if (message.destroyed && !message.complete) return;
      problems.push(`${message.method} ${message.url}: ${error instanceof Error ? error.message : 'unknown'}`);
      send(response, refusal(500, 'the double does not know that'));
    }
  }

  async function afterDelay(answer: () => ReturnType<Faults['next']> | Promise<DoubleResponse>) {
    const due = delayMs === 0 ? null : new Promise((resolve) => setTimeout(resolve, delayMs));
    const made = answer();
    const isMischief = typeof made === 'function';
    const result = isMischief ? null : await made;
    await due;
    return [isMischief ? made : null, result] as const;
  }

  async function answerTo(request: DoubleRequest): Promise<DoubleResponse> {
    if (request.headers['user-agent'] === undefined) return refusal(403, 'Request forbidden by administrative rules.');
    if (request.method === 'POST' && /^\/app\/installations\/[^/]+\/access_tokens$/u.test(request.path)) return installationToken(request, access);
    const credential = authenticate(request, access);
    if (typeof credential !== 'boolean') return credential;
    if (request.isGraphql && request.method === 'POST') return await answerGraphql(request, double.repositories, double.graphql);
    if (request.method === 'GET' && request.path === '/rate_limit') return limits();
    if (request.method === 'GET' && request.path === searchOperation.path) {
      refuseStrayParameters(request, githubDescription().queryParameters(searchOperation));
      return searchRepositories(request, double.repositories, credential);
    }
    return await answerRest(byName(request, double.repositories), credential);
  }

  async function answerRest(request: DoubleRequest, credential: boolean): Promise<DoubleResponse> {
    const found = findRoute(request);
    if (found === null) throw new Error('there is no such route');
    const { route, rest } = found;
    refuseStrayParameters(request, githubDescription().queryParameters(route.operation));
    const repository = locate(double.repositories, found, request, double.url, credential);
    if ('status' in repository) return repository;
    const { url, treeLimit, pullRequests } = double;
    return await route.answer({ url, request, repository, rest, treeLimit, pullRequests, hasCredential: credential });
  }

  return double;
}

function limits(): DoubleResponse {
  const core = { limit: 5000, used: 10, remaining: 4990, reset: 4_000_000_000 };
  const headers = { 'x-ratelimit-limit': '5000', 'x-ratelimit-remaining': '4990' };
  return { status: 200, headers, body: { resources: { core }, rate: core } };
}

/** `/repositories/{id}/...`, which redirects and links lead to, is the same as `/repos/{owner}/{repo}/...`. */
function byName(request: DoubleRequest, repositories: HostedRepositories): DoubleRequest {
  const [collection, id = '', ...rest] = request.segments;
  if (collection !== 'repositories') return request;
  const repository = repositories.find(id)?.repository;
  return { ...request, segments: ['repos', ...(repository?.path ?? 'none/none').split('/'), ...rest] };
}

function refuseStrayParameters({ query }: DoubleRequest, known: readonly string[]): void {
  for (const name of query.keys()) if (!known.includes(name)) throw new Error(`there is no parameter ${name}`);
  const perPage = query.get('per_page') ?? '1';
  if (!/^\d+$/u.test(perPage) || Number(perPage) < 1 || Number(perPage) > 100) throw new Error('per_page has to be within 1 and 100');
  if (!/^[1-9]\d*$/u.test(query.get('page') ?? '1')) throw new Error('page has to be a number');
}
