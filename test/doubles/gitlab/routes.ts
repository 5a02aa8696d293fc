import { listCommits, showCommit, showMergeBase } from './commits.ts';
import { json, refusal, type Exchange, type ProjectExchange, type Reply } from './request.ts';
import type { RouteName } from './faults.ts';
import { fromBytes } from './git.ts';
import type { HostedRepositories } from '../hosted-repositories.ts';
import { listBranches, searchProjects } from './lists.ts';
import { createMergeRequest, editMergeRequest, listMergeRequests, type MergeRequestExchange } from './merge-requests.ts';
import { listTree, type TreeTokens } from './tree.ts';

export interface Route {
  readonly name: RouteName;
  /** The project's id or path, decoded. Null for a route without a project. */
  readonly project: string | null;
  answer(exchange: Exchange & Partial<MergeRequestExchange>, isKnown: boolean, tokens: TreeTokens): Promise<Reply>;
}

const segment = '([^/]+)';
const projectRoute = new RegExp(`^/projects/${segment}(?:/repository/(commits|tree|branches|merge_base)(?:/${segment})?)?$`, 'u');
const blobRoute = new RegExp(`^/projects/${segment}/repository/blobs/${segment}/raw$`, 'u');

const mergeRequestRoute = new RegExp(`^/projects/${segment}/merge_requests(?:/([0-9]+))?$`, 'u');

/** Returns the route of a path below the API's, which is still encoded. Null if there is none. */
export function routeOf(method: string, path: string, projects: HostedRepositories): Route | null {
  if (path === '/projects' && method === 'GET') {
    return { name: 'search', project: null, answer: (exchange, isKnown) => searchProjects(exchange, projects, isKnown) };
  }
  const [mergeRequests, target, iid] = mergeRequestRoute.exec(path) ?? [];
  if (mergeRequests !== undefined && target !== undefined) return mergeRequestRouteOf(method, decodeURIComponent(target), iid);
  return method === 'GET' ? readingRouteOf(path) : null;
}

function mergeRequestRouteOf(method: string, project: string, iid: string | undefined): Route | null {
  const answers: Readonly<Record<string, (exchange: MergeRequestExchange) => Promise<Reply>>> =
    iid === undefined ? { GET: listMergeRequests, POST: createMergeRequest } : { PUT: (exchange) => editMergeRequest(exchange, Number(iid)) };
  const answer = answers[method];
  if (answer === undefined) return null;
  return {
    name: method === 'GET' ? 'mergeRequests' : 'mergeRequest',
    project,
    answer: async (exchange, isKnown) => (isKnown || method === 'GET' ? await answer(withMergeRequests(exchange)) : refusal(401, 'Unauthorized')),
  };
}

function readingRouteOf(path: string): Route | null {
  if (path === '/version') return { name: 'version', project: null, answer: async (_, isKnown) => version(isKnown) };
  const [, owner, blob] = blobRoute.exec(path) ?? [];
  if (owner !== undefined && blob !== undefined) {
    return { name: 'blob', project: decodeURIComponent(owner), answer: async (exchange) => await showBlob(inProject(exchange), decodeURIComponent(blob)) };
  }
  const [, id, kind, rest] = projectRoute.exec(path) ?? [];
  if (id === undefined) return null;
  const project = decodeURIComponent(id);
  if (kind === undefined) return { name: 'project', project, answer: async (exchange) => await showProject(inProject(exchange)) };
  if (kind === 'branches') return rest === undefined ? { name: 'branches', project, answer: async (exchange) => await listBranches(inProject(exchange)) } : null;
  if (kind === 'tree') {
    return rest === undefined ? { name: 'tree', project, answer: async (exchange, _, tokens) => await listTree(inProject(exchange), tokens) } : null;
  }
  if (kind === 'merge_base') {
    return rest === undefined ? { name: 'mergeBase', project, answer: async (exchange) => await showMergeBase(inProject(exchange)) } : null;
  }
  if (rest === undefined) return { name: 'commits', project, answer: async (exchange) => await listCommits(inProject(exchange)) };
  return { name: 'commit', project, answer: async (exchange) => await showCommit(inProject(exchange), decodeURIComponent(rest)) };
}

function inProject({ request, url, base, query, project, git }: Exchange & Partial<ProjectExchange>): ProjectExchange {
  if (project === undefined || git === undefined) throw new Error('the route is one of a project');
  return { request, url, base, query, project, git };
}

function withMergeRequests(exchange: Exchange & Partial<MergeRequestExchange>): MergeRequestExchange {
  const { mergeRequests, body } = exchange;
  if (mergeRequests === undefined || body === undefined) throw new Error('the route is one of merge requests');
  return { ...inProject(exchange), mergeRequests, body };
}

function version(isKnown: boolean): Reply {
  return isKnown ? json({ version: '19.1.0-ee', revision: '0123456789a' }) : refusal(401, 'Unauthorized');
}

/** `GET /projects/:id/repository/blobs/:sha/raw` */
async function showBlob({ git }: ProjectExchange, sha: string): Promise<Reply> {
  const content = /^[0-9a-f]{40}$/u.test(sha) ? await git(['cat-file', 'blob', sha]) : null;
  if (content === null) return refusal(404, 'Blob Not Found');
  return { status: 200, headers: { 'content-type': 'text/plain', 'x-content-type-options': 'nosniff' }, body: Buffer.from(content, 'latin1') };
}

/** `GET /projects/:id` */
async function showProject({ project, git, base }: ProjectExchange): Promise<Reply> {
  const branch = fromBytes((await git(['symbolic-ref', '--short', 'HEAD'])) ?? '').trim();
  const branches = (await git(['for-each-ref', '--format=%(refname:short)', 'refs/heads'])) ?? '';
  const name = project.path.slice(project.path.lastIndexOf('/') + 1);
  return json({
    id: project.id,
    description: null,
    name,
    name_with_namespace: project.path.replaceAll('/', ' / '),
    path: name,
    path_with_namespace: project.path,
    default_branch: branch,
    visibility: project.visibility,
    empty_repo: branches === '',
    archived: project.archived ?? false,
    web_url: `${base}/${project.path}`,
  });
}
