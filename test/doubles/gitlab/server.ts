import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json as readJson } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import { createFaults, type Fault, type Faults, send } from './faults.ts';
import { gitOf } from './git.ts';
import { createMergeRequests, type MergeRequests } from './merge-requests.ts';
import { createHostedRepositories, type HostedRepositories } from '../hosted-repositories.ts';
import { BadRequest, queryOf, refusal, type Reply, type RequestLog } from './request.ts';
import { routeOf } from './routes.ts';
import type { TreeTokens } from './tree.ts';

export interface GitLabDoubleOptions {
  /** The one that is valid. */
  readonly token?: string;
  /** The path of the host: `/gitlab`. */
  readonly root?: string;
  readonly treeTokens?: TreeTokens;
}

/** A GitLab on loopback, which serves real repositories. */
export interface GitLabDouble {
  readonly url: string;
  readonly projects: HostedRepositories;
  readonly mergeRequests: MergeRequests;
  readonly faults: Faults;
  /** The requests that came, redirected ones and their targets each. */
  readonly requests: RequestLog[];
  /** Requests that must not be sent to GitLab. A test with any of them has failed. */
  readonly unexpected: string[];
  /** The delay of each response, in milliseconds. */
  delayMs: number;
  close(): Promise<void>;
}

export async function startGitLab({ token = 'glpat-double', root = '', treeTokens = 'path' }: GitLabDoubleOptions = {}): Promise<GitLabDouble> {
  const projects = createHostedRepositories('private');
  const mergeRequests = createMergeRequests();
  const faults = createFaults();
  const memory = new Map<string, Promise<string | null>>();
  const requests: RequestLog[] = [];
  const unexpected: string[] = [];
  let underWay = 0;

  const server = createServer((request, response) => void handle(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}${root}`;
  const double = { url, projects, mergeRequests, faults, requests, unexpected, delayMs: 0, close };

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    underWay += 1;
    try {
      const { reply, fault } = await answer(request, response);
      if (double.delayMs > 0) await pause(double.delayMs);
      send(response, reply, fault);
    } catch (error) {
      // GitLab's server refuses a path that can't be decoded before it is routed.
      if (error instanceof URIError) return send(response, { status: 400, body: { error: 'Bad Request' } }, null);
      unexpected.push(`${request.method} ${request.url}: ${String(error)}`);
      response.destroy();
    } finally {
      underWay -= 1;
    }
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<{ readonly reply: Reply; readonly fault: Fault | null }> {
    const target = request.url ?? '';
    const prefix = `${root}/api/v4`;
    const [path = ''] = target.split('?');
    const asked = new URL(target, url);
    const route = path.startsWith(`${prefix}/`) && asked.pathname === path ? routeOf(request.method ?? '', path.slice(prefix.length), projects) : null;
    if (route === null) {
      unexpected.push(`${request.method} ${target}`);
      return { reply: { status: 404, body: { error: '404 Not Found' } }, fault: null };
    }
    const query = queryOf(asked.searchParams);
    const body = request.method === 'GET' ? {} : (await readJson(request) as Record<string, unknown>);
    const log = { route: route.name, target, query: query.values, others: underWay - 1, began: performance.now(), ended: Number.POSITIVE_INFINITY };
    requests.push(log);
    response.once('close', () => (log.ended = performance.now()));
    const fault = faults.next(route.name);
    const identity = identityOf(request);
    if (identity === 'refused') return { reply: refusal(401, 'Unauthorized'), fault };
    const exchange = { request, url: asked, base: url, query, mergeRequests, body };
    try {
      const found = route.project === null ? null : projects.find(route.project);
      if (route.project !== null) {
        if (found === null || (identity === 'nobody' && found.repository.visibility !== 'public')) return { reply: refusal(404, 'Project Not Found'), fault };
        if (found.moved) return { reply: movedTo(target, found.repository.id), fault };
        if (found.repository.visibility === 'closed' && route.name !== 'project') return { reply: refusal(403, 'Forbidden'), fault };
      }
      const inProject = found === null ? {} : { project: found.repository, git: gitOf(found.repository.gitDir, memory) };
      const reply = await route.answer({ ...exchange, ...inProject }, identity === 'somebody', treeTokens);
      for (const name of query.unknown()) unexpected.push(`${target}: the parameter ${name}`);
      return { reply, fault };
    } catch (error) {
      if (!(error instanceof BadRequest)) throw error;
      unexpected.push(`${target}: ${error.message}`);
      return { reply: { status: 400, body: { error: error.message } }, fault };
    }
  }

  function identityOf({ headers }: IncomingMessage): 'somebody' | 'nobody' | 'refused' {
    const given = headers['private-token'] ?? headers.authorization?.replace(/^Bearer /u, '');
    if (given === undefined) return 'nobody';
    return given === token ? 'somebody' : 'refused';
  }

  function movedTo(target: string, id: number): Reply {
    const location = `${new URL(url).origin}${target.replace(/(\/projects\/)[^/?]+/u, `$1${id}`)}`;
    return { status: 301, headers: { location }, body: { message: 'This resource has been moved permanently' } };
  }

  async function close(): Promise<void> {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  }

  return double;
}
