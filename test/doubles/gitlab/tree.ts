import { BadRequest, json, refusal, type ProjectExchange, type Reply } from './request.ts';
import { fromBytes } from './git.ts';
import { linkTo, pageHeaders, pagingOf } from './paging.ts';

interface Entry {
  readonly id: string;
  readonly name: string;
  readonly type: string;
  readonly path: string;
  readonly mode: string;
}

/** How the next page of a tree is named: by the path of the last entry, or, as older versions did, by its id. */
export type TreeTokens = 'path' | 'id';

const order = ['tree', 'blob', 'commit'];

/** `GET /projects/:id/repository/tree` */
export async function listTree(exchange: ProjectExchange, tokens: TreeTokens): Promise<Reply> {
  const { query } = exchange;
  const ref = query.text('ref') ?? 'HEAD';
  const path = query.text('path') ?? '';
  if (path.startsWith('/') || path.endsWith('/')) throw new BadRequest('path is invalid');
  const paging = pagingOf(exchange);
  const isKeyset = query.text('pagination') === 'keyset';
  const token = isKeyset ? query.text('page_token') : undefined;
  const entries = await entriesOf(exchange, ref, path, query.flag('recursive', false));
  if (entries === null) return refusal(404, 'Tree Not Found');
  if (!isKeyset) {
    const from = (paging.page - 1) * paging.perPage;
    const page = entries.slice(from, from + paging.perPage);
    return json(page, pageHeaders(exchange, paging, from + paging.perPage < entries.length));
  }
  const tokenOf = (entry: Entry | undefined): string => (tokens === 'id' ? (entry?.id ?? '') : encode(entry?.path ?? ''));
  const start = token === undefined ? 0 : entries.findIndex((entry) => tokenOf(entry) === token) + 1;
  if (token !== undefined && start === 0) throw new BadRequest('page_token is invalid');
  const page = entries.slice(start, start + paging.perPage);
  const hasNext = start + paging.perPage < entries.length;
  const link = hasNext ? { link: `<${linkTo(exchange, { page_token: tokenOf(page.at(-1)) })}>; rel="next"` } : {};
  return json(page, link);
}

async function entriesOf({ git }: ProjectExchange, ref: string, path: string, recursive: boolean): Promise<Entry[] | null> {
  const output = await git(['ls-tree', '-z', ...(recursive ? ['-r', '-t'] : []), path === '' ? ref : `${ref}:${path}`]);
  if (output === null) return null;
  const entries = output.split('\0').filter((line) => line !== '').map((line) => entryOf(line, path));
  return entries.toSorted((a, b) => order.indexOf(a.type) - order.indexOf(b.type));
}

function entryOf(line: string, path: string): Entry {
  const tab = line.indexOf('\t');
  const [mode = '', type = '', id = ''] = line.slice(0, tab).split(' ');
  const below = fromBytes(line.slice(tab + 1));
  const whole = path === '' ? below : `${path}/${below}`;
  return { id, name: whole.slice(whole.lastIndexOf('/') + 1), type, path: whole, mode };
}

function encode(path: string): string {
  return Buffer.from(JSON.stringify({ file_name: path })).toString('base64');
}
