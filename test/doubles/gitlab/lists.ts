import { pageHeaders, pagingOf } from './paging.ts';
import type { HostedRepositories } from '../hosted-repositories.ts';
import { json, type Exchange, type ProjectExchange, type Reply } from './request.ts';

/** `GET /projects`, which finds names in any case, and paths with `search_namespaces`. */
export async function searchProjects(exchange: Exchange, projects: HostedRepositories, isKnown: boolean): Promise<Reply> {
  const { query, base } = exchange;
  const paging = pagingOf(exchange);
  const [search = '', inNamespaces] = [query.text('search')?.toLowerCase(), query.flag('search_namespaces', false)];
  const [onlyOfMember, simple] = [query.flag('membership', false), query.flag('simple', false)];
  if (query.text('order_by') !== 'id' || query.text('sort') !== 'asc' || !simple) throw new Error('the double sorts by id, and shows the simple form only');
  const found = projects.all().filter(({ path, visibility }) => {
    const name = inNamespaces ? path : path.slice(path.lastIndexOf('/') + 1);
    return name.toLowerCase().includes(search) && (isKnown || (visibility === 'public' && !onlyOfMember));
  });
  const [from, to] = [(paging.page - 1) * paging.perPage, paging.page * paging.perPage];
  const body = found.slice(from, to).map(({ id, path }) => ({
    id, path: path.slice(path.lastIndexOf('/') + 1), path_with_namespace: path, default_branch: 'main', web_url: `${base}/${path}`,
  }));
  return json(body, pageHeaders(exchange, paging, to < found.length));
}

/** `GET /projects/:id/repository/branches`, sorted by name. */
export async function listBranches(exchange: ProjectExchange): Promise<Reply> {
  const paging = pagingOf(exchange);
  const output = (await exchange.git(['for-each-ref', '--format=%(objectname) %(refname:strip=2)', 'refs/heads'])) ?? '';
  const all = output.split('\n').filter((line) => line !== '').map((line) => {
    const [oid = '', ...name] = Buffer.from(line, 'latin1').toString('utf8').split(' ');
    return { name: name.join(' '), merged: false, protected: false, default: false, commit: { id: oid, short_id: oid.slice(0, 8) } };
  });
  const [from, to] = [(paging.page - 1) * paging.perPage, paging.page * paging.perPage];
  return json(all.slice(from, to), pageHeaders(exchange, paging, to < all.length));
}
