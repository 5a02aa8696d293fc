import { pageHeaders, pagingOf } from './paging.ts';
import { BadRequest, json, refusal, type ProjectExchange, type Reply } from './request.ts';

export interface StoredMergeRequest {
  readonly iid: number;
  title: string;
  description: string;
  readonly sourceBranch: string;
  targetBranch: string;
  state: 'opened' | 'closed';
  /** Another project, which is a fork of this one, or this one. */
  readonly sourceProject: number;
}

type NewMergeRequest = Pick<StoredMergeRequest, 'title' | 'description' | 'sourceBranch' | 'targetBranch' | 'sourceProject'>;

/** The merge requests of the projects, by the ids of these. */
export interface MergeRequests {
  /** Whether the credential can see and open them. */
  allowed: boolean;
  /** The oldest comes first. */
  of(project: number): readonly StoredMergeRequest[];
  add(project: number, mergeRequest: NewMergeRequest): StoredMergeRequest;
}

export function createMergeRequests(): MergeRequests {
  const byProject = new Map<number, StoredMergeRequest[]>();
  return {
    allowed: true,
    of: (project) => byProject.get(project) ?? [],
    add(project, given) {
      const all = byProject.get(project) ?? [];
      byProject.set(project, all);
      const made: StoredMergeRequest = { ...given, iid: all.length + 1, state: 'opened' };
      all.push(made);
      return made;
    },
  };
}

export interface MergeRequestExchange extends ProjectExchange {
  readonly mergeRequests: MergeRequests;
  readonly body: Readonly<Record<string, unknown>>;
}

/** `GET /projects/:id/merge_requests` */
export async function listMergeRequests(exchange: MergeRequestExchange): Promise<Reply> {
  const { query, project, mergeRequests } = exchange;
  const paging = pagingOf(exchange);
  const [branch, state] = [query.text('source_branch'), query.text('state')];
  if (!mergeRequests.allowed) return refusal(403, 'Forbidden');
  const all = mergeRequests.of(project.id).toReversed()
    .filter((each) => (branch === undefined || each.sourceBranch === branch) && (state === undefined || each.state === state));
  const [from, to] = [(paging.page - 1) * paging.perPage, paging.page * paging.perPage];
  return json(all.slice(from, to).map((each) => fieldsOf(each, exchange)), pageHeaders(exchange, paging, to < all.length));
}

/** `POST /projects/:id/merge_requests` */
export async function createMergeRequest(exchange: MergeRequestExchange): Promise<Reply> {
  const { project, git, mergeRequests } = exchange;
  if (!mergeRequests.allowed) return refusal(403, 'Forbidden');
  const { sourceBranch, targetBranch, title, description = '' } = textsOf(exchange);
  if (title === undefined || targetBranch === undefined || sourceBranch === undefined) throw new BadRequest('a parameter is missing');
  for (const branch of [sourceBranch, targetBranch]) {
    if ((await git(['rev-parse', '--verify', '--quiet', `refs/heads/${branch}`])) === null) throw new BadRequest(`there is no branch ${branch}`);
  }
  if (Array.from(title).length > 255) return { status: 422, body: { message: ['Title is too long (maximum is 255 characters)'] } };
  if (sourceBranch === targetBranch) return conflict("You can't use same project/branch for source and target");
  const known = mergeRequests.of(project.id).find((each) =>
    each.state === 'opened' && each.sourceProject === project.id && each.sourceBranch === sourceBranch && each.targetBranch === targetBranch);
  if (known !== undefined) return conflict(`Another open merge request already exists for this source branch: !${known.iid}`);
  const made = mergeRequests.add(project.id, { title, description: withoutQuickActions(description), sourceBranch, targetBranch, sourceProject: project.id });
  return { status: 201, body: fieldsOf(made, exchange) };
}

/** `PUT /projects/:id/merge_requests/:merge_request_iid` */
export async function editMergeRequest(exchange: MergeRequestExchange, iid: number): Promise<Reply> {
  const { project, mergeRequests } = exchange;
  if (!mergeRequests.allowed) return refusal(403, 'Forbidden');
  const found = mergeRequests.of(project.id).find((each) => each.iid === iid);
  if (found === undefined) return refusal(404, 'Not found');
  const { title = found.title, description = found.description, targetBranch = found.targetBranch } = textsOf(exchange);
  Object.assign(found, { title, description: withoutQuickActions(description), targetBranch });
  return json(fieldsOf(found, exchange));
}

function conflict(message: string): Reply {
  return { status: 409, body: { message: [message] } };
}

const names = { sourceBranch: 'source_branch', targetBranch: 'target_branch', title: 'title', description: 'description' } as const;

/** Some of GitLab's quick actions. It executes them, and removes them from the description. */
const quickActions = /^\/(?:merge|approve|close|label)(?: [^\n]*)?(?:\s*\n|$)/gim;

const withoutQuickActions = (text: string): string => text.replaceAll('\r', '').replaceAll(quickActions, '');

/** The parameters of the body. Throws for one that the double does not know. */
function textsOf({ body }: MergeRequestExchange): { readonly [K in keyof typeof names]?: string } {
  const known: readonly string[] = Object.values(names);
  const stray = Object.entries(body).filter(([name, value]) => !known.includes(name) || typeof value !== 'string');
  if (stray.length > 0) throw new BadRequest(`the body has ${stray.map(([name]) => name).join(', ')}`);
  return Object.fromEntries(Object.entries(names).flatMap(([name, field]) => (field in body ? [[name, body[field]]] : [])));
}

/** As on GitLab's page about draft merge requests: a title that begins with one of these is a draft. */
const draftPrefixes = ['[draft]', 'draft:', '(draft)'];

function fieldsOf({ iid, title, description, sourceBranch, targetBranch, state, sourceProject }: StoredMergeRequest, { project, base }: ProjectExchange): object {
  return {
    id: 50_000 + iid, iid, title, description, state,
    project_id: project.id, source_project_id: sourceProject, target_project_id: project.id,
    source_branch: sourceBranch, target_branch: targetBranch,
    draft: draftPrefixes.some((prefix) => title.trimStart().toLowerCase().startsWith(prefix)),
    web_url: `${base}/${project.path}/-/merge_requests/${iid}`,
  };
}
