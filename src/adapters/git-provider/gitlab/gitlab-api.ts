import { createRequesterFn } from '@gitbeaker/requester-utils';
import { Branches, Commits, MergeRequests, Projects, Repositories } from '@gitbeaker/rest';
import { jsonOrNull } from '../../shared/json.ts';
import { linkIn } from '../response-fields.ts';
import { itemsPerHostPage } from '../paging.ts';
import { createHttpClient, type HttpRequest, type HttpResponse, isOfOrigin, rateLimitIn } from '../retrying-http-client.ts';
import { ListedBranch, Commit, HeadCommit, MergeRequest, type PageName, pageOf, Project, TreeEntry, Version } from './gitlab-responses.ts';
import type { HostUrl, ResolvedOptions } from './gitlab-provider.ts';
import { failed, failures, isJson, malformed, parse, ErrorResponse } from './gitlab-failures.ts';

/** A project's full path, or its number in GitLab. */
export type ProjectName = string | number;

interface HistoryQuery {
  readonly ref: string;
  readonly path: string;
  readonly page: number;
}

interface MergeRequestText {
  readonly title: string;
  readonly description: string;
}

export type GitLabApiFactory = ReturnType<typeof createGitLabApiFactory>;
export type GitLabApi = ReturnType<GitLabApiFactory>;

type Send = (endpoint: string, query: string, more?: Omit<HttpRequest, 'url' | 'headers'>) => Promise<HttpResponse>;

/**
 * Returns a factory of APIs whose requests end when a signal fires. gitbeaker builds the requests, and the shared HTTP client sends them.
 */
export function createGitLabApiFactory(options: ResolvedOptions) {
  const { host, token, clock } = options;
  const http = createHttpClient({
    ...options,
    failures,
    rateLimitOf: ({ status, headers }) => rateLimitIn(headers, 'ratelimit', status === 429, clock),
  });

  return (signal: AbortSignal) => {
    const send: Send = async (endpoint, query, more = {}) => {
      const type = more.body === undefined ? {} : { 'content-type': 'application/json' };
      const credential = token === null ? {} : { 'private-token': token };
      const headers = { accept: 'application/json', 'user-agent': 'skep', ...type, ...credential };
      const redirectTarget = (location: string, from: URL): URL => renamedUrl(location, from, host);
      const response = await http.send({ url: urlOf(host, endpoint, query), headers, redirectTarget, ...more }, signal);
      if (response.status < 200 || response.status > 299) throw new ErrorResponse(response);
      return response;
    };
    return apiOf(send, host);
  };
}

type Requester = Parameters<typeof createRequesterFn>[1];

/** Returns the parts of gitbeaker, which build the requests. The HTTP client limits the time, and adds the credential. */
function resourcesOf(host: HostUrl, requester: Requester) {
  const requesterFn = createRequesterFn(async (_, request) => request, requester);
  const options = { host: host.origin, queryTimeout: null, rateLimits: {}, requesterFn };
  return {
    branches: new Branches(options),
    commits: new Commits(options),
    mergeRequests: new MergeRequests(options),
    projects: new Projects(options),
    repositories: new Repositories(options),
  };
}

/** Each method is one request. Throws an {@link ErrorResponse} if the host refuses it. */
function apiOf(send: Send, host: HostUrl) {
  const ask = async (endpoint: string, { searchParams = '', method = 'GET', body }: Record<string, unknown> = {}) => {
    const response = await send(endpoint, String(searchParams), { method: String(method), ...(typeof body === 'string' && { body }) });
    return { body: bodyOf(response, host), headers: {}, status: response.status };
  };
  const { branches, commits, mergeRequests, projects, repositories } = resourcesOf(host, ask);
  return {
    project: async (project: ProjectName) => parse(Project, await projects.show(project), 'a project'),
    commit: async (project: ProjectName, name: string) =>
      parse(HeadCommit, await commits.show(project, name, { stats: false }), 'a commit'),
    /** Returns the newest commit that both have in their history. */
    mergeBase: async (project: ProjectName, commit: string, other: string) =>
      parse(HeadCommit, await repositories.mergeBase(project, [commit, other]), 'a commit'),
    /** The newest commit comes first. */
    async history(project: ProjectName, { ref, path, page }: HistoryQuery) {
      const query = { refName: ref, path, follow: false, perPage: itemsPerHostPage, page };
      return parse(pageOf(Commit), await commits.all(project, query), 'commits');
    },
    /** Returns the entries at any depth below the directory. The root is the empty string. */
    async tree(project: ProjectName, ref: string, directory: string, page: PageName | null) {
      const query = {
        ref,
        recursive: true,
        perPage: itemsPerHostPage,
        ...(directory !== '' && { path: directory }),
        ...(page === null || 'pageToken' in page ? { pagination: 'keyset' as const, ...page } : page),
      };
      return parse(pageOf(TreeEntry), await repositories.allRepositoryTrees(project, query), 'a directory');
    },
    /** Sorted by age, so that a new project moves no other to another page. */
    async search(text: string, onlyOfMember: boolean, page: number) {
      const order = { orderBy: 'id' as const, sort: 'asc' as const, perPage: itemsPerHostPage, page };
      const scope = { ...(onlyOfMember && { membership: true }), ...(text.includes('/') && { searchNamespaces: true }) };
      return parse(pageOf(Project), await projects.all({ search: text, simple: true, ...order, ...scope }), 'a search');
    },
    branches: async (project: ProjectName, page: number) =>
      parse(pageOf(ListedBranch), await branches.all(project, { perPage: itemsPerHostPage, page }), 'branches'),
    /** Lists the open merge requests from a branch of this name, of the project or of a fork. The newest comes first. */
    async mergeRequestsFrom(projectId: number, branch: string, page: PageName | null) {
      const query = { sourceBranch: branch, state: 'opened' as const, perPage: itemsPerHostPage, ...page };
      return parse(pageOf(MergeRequest), await mergeRequests.all({ projectId, ...query }), 'merge requests');
    },
    createMergeRequest: async (projectId: number, branch: string, base: string, { title, description }: MergeRequestText) =>
      parse(MergeRequest, await mergeRequests.create(projectId, branch, base, title, { description }), 'a merge request'),
    async editMergeRequest(projectId: number, number: number, { base, ...text }: MergeRequestText & { readonly base: string | null }) {
      const changes = { ...text, ...(base !== null && { targetBranch: base }) };
      return parse(MergeRequest, await mergeRequests.edit(projectId, number, changes), 'a merge request');
    },
    // gitbeaker would parse the bytes as JSON or text.
    blob: async (project: ProjectName, id: string, maxResponseBytes: number) =>
      (await send(`projects/${encodeURIComponent(project)}/repository/blobs/${id}/raw`, '', { maxResponseBytes })).body,
    // gitbeaker has no method for it.
    version: async () => parse(Version, (await ask('version')).body, 'its version').version,
  };
}

/** Throws if a name in the endpoint changes the path of the URL. */
function urlOf(host: HostUrl, endpoint: string, query: string): URL {
  const path = `${host.apiPath}/${endpoint}`;
  const url = new URL(`${host.origin}${path}`);
  if (!isInside(url, host) || url.pathname !== path) throw failed('a name would change the path of the request');
  url.search = query;
  return url;
}

function isInside(url: URL, { origin, apiPath }: HostUrl): boolean {
  return isOfOrigin(url, origin) && url.pathname.startsWith(`${apiPath}/`);
}

/** Follows only a redirect to the same request for a renamed project, because no other URL may get the credential. */
function renamedUrl(location: string, from: URL, host: HostUrl): URL {
  const target = URL.parse(location, from);
  if (target === null) throw failed('it redirects to an invalid URL');
  if (!isInside(target, host)) throw failed('it redirects to an address outside its API; check the configured URL');
  const asked = resourceOf(from, host);
  if (asked === null || asked !== resourceOf(target, host)) throw failed('it redirects to another request');
  const renamed = new URL(from);
  renamed.pathname = target.pathname;
  return renamed;
}

/** Returns the part of a URL after the project's name. Null if the URL is not about a project. */
function resourceOf({ pathname }: URL, { apiPath }: HostUrl): string | null {
  const [, projects, project = '', ...asked] = pathname.slice(apiPath.length).split('/');
  // A slash at the end is another request.
  return projects === 'projects' && project !== '' ? asked.map((segment) => `/${segment}`).join('') : null;
}

/** Wraps a list in an object, because gitbeaker would follow the page links of an array to any host. */
function bodyOf(response: HttpResponse, host: HostUrl): Record<string, unknown> {
  if (!isJson(response)) throw failed('it does not answer with JSON; check that its URL is that of a GitLab');
  const body = jsonOrNull(response.text);
  if (Array.isArray(body)) return { items: body, next: nextPage(response, host) };
  if (typeof body !== 'object' || body === null) throw malformed('the request');
  return { ...body };
}

/** The link itself is not followed. Throws if it has another origin, because such an answer is not trusted. */
function nextPage({ headers }: HttpResponse, host: HostUrl): PageName | null {
  const target = linkIn(headers, 'next');
  const link = target === null ? null : URL.parse(target);
  if (target !== null && link?.origin !== host.origin) {
    throw failed('its pages link to another origin; configure the URL in its setting external_url');
  }
  const page = headers.get('x-next-page') ?? '';
  if (/^[1-9]\d{0,8}$/u.test(page)) return { page: Number(page) };
  const pageToken = link?.searchParams.get('page_token') ?? '';
  return pageToken === '' ? null : { pageToken };
}
