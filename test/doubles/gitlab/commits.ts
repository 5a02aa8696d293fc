import { json, refusal, type ProjectExchange, type Reply } from './request.ts';
import { pageHeaders, pagingOf } from './paging.ts';

const format = '--format=%H%x00%P%x00%ct%x00%at%x00%s';

/** `GET /projects/:id/repository/commits` */
export async function listCommits(exchange: ProjectExchange): Promise<Reply> {
  const { query, git, project, base } = exchange;
  const paging = pagingOf(exchange);
  const path = query.text('path');
  const flags = query.flag('follow', true) && path !== undefined ? ['--follow'] : [];
  const skip = (paging.page - 1) * paging.perPage;
  const args = ['log', format, `--max-count=${skip + paging.perPage}`, ...flags, query.text('ref_name') ?? 'HEAD'];
  const output = (await git([...args, '--', ...(path === undefined ? [] : [path])])) ?? '';
  const commits = output.split('\n').filter((line) => line !== '').slice(skip);
  // As in GitLab, a full page always has a next page, which may be empty.
  const headers = pageHeaders(exchange, paging, commits.length === paging.perPage);
  return json(commits.map((line) => commitOf(line, base, project.path)), headers);
}

/** `GET /projects/:id/repository/commits/:sha` */
export async function showCommit({ query, git, project, base }: ProjectExchange, name: string): Promise<Reply> {
  query.flag('stats', true);
  const line = await git(['log', format, '--max-count=1', `${name}^{commit}`, '--']);
  if (line === null || line === '') return refusal(404, 'Commit Not Found');
  return json({ ...commitOf(line.trimEnd(), base, project.path), status: null, project_id: project.id, last_pipeline: null });
}

/** `GET /projects/:id/repository/merge_base` */
export async function showMergeBase({ query, git, project, base }: ProjectExchange): Promise<Reply> {
  const refs = query.list('refs[]');
  if (refs.length < 2) return refusal(400, 'Provide at least 2 refs');
  for (const ref of refs) {
    if ((await git(['rev-parse', '--verify', '--quiet', `${ref}^{commit}`])) === null) return refusal(400, `Could not find ref: ${ref}`);
  }
  const oid = await git(['merge-base', ...refs]);
  if (oid === null) return refusal(404, 'Merge Base Not Found');
  const line = (await git(['log', format, '--max-count=1', oid.trim(), '--'])) ?? '';
  return json(commitOf(line.trimEnd(), base, project.path));
}

function commitOf(line: string, base: string, path: string): Record<string, unknown> {
  const [id = '', parents = '', committed = '', authored = '', title = ''] = line.split('\0');
  return {
    id,
    short_id: id.slice(0, 8),
    created_at: dateOf(committed),
    parent_ids: parents.split(' ').filter((parent) => parent !== ''),
    title,
    message: `${title}\n`,
    author_name: 'A',
    author_email: 'a@example.com',
    authored_date: dateOf(authored),
    committer_name: 'C',
    committer_email: 'c@example.com',
    committed_date: dateOf(committed),
    trailers: {},
    web_url: `${base}/${path}/-/commit/${id}`,
  };
}

/** With the offset of a time zone, as commits have them. */
function dateOf(seconds: string): string {
  const shifted = new Date((Number(seconds) + 7200) * 1000).toISOString();
  return shifted.replace('Z', '+02:00');
}
