import { z } from 'zod';
import { CommitDate } from '../response-fields.ts';
import type { AskGraphql, GraphqlQuery } from './github-api.ts';
import { failed, TooHeavy, parse } from './github-failures.ts';
import type { RepositoryName } from './github-listing.ts';

const GraphqlHistory = z.object({
  totalCount: z.int(),
  nodes: z.array(z.object({ committedDate: CommitDate })),
  pageInfo: z.object({ hasNextPage: z.boolean(), endCursor: z.string().nullable() }),
});
type GraphqlHistory = z.infer<typeof GraphqlHistory>;

const GraphqlHistories = z.object({
  repository: z.object({ object: z.record(z.string(), GraphqlHistory).nullable() }).nullable(),
});

interface HistoryPage {
  readonly path: string;
  readonly first: number;
  /** A cursor, or null for the newest commits. */
  readonly after: string | null;
}

/** Builds the query for pages of histories. `pageAlias` names each page in the answer. */
function historiesQuery({ owner, repo: name }: RepositoryName, head: string, pages: readonly HistoryPage[]): GraphqlQuery {
  const variables: Record<string, unknown> = { owner, name, head };
  const declarations = ['$owner: String!', '$name: String!', '$head: GitObjectID!'];
  const selections = pages.map(({ path, first, after }, index) => {
    Object.assign(variables, { [`p${index}`]: path, [`c${index}`]: after });
    declarations.push(`$p${index}: String!`, `$c${index}: String`);
    return `${pageAlias(index)}: history(path: $p${index}, first: ${first}, after: $c${index}) { ...page }`;
  });
  const text = `query(${declarations.join(', ')}) {
    repository(owner: $owner, name: $name) { object(oid: $head) { ... on Commit { ${selections.join('\n')} } } }
  }
  fragment page on CommitHistoryConnection { totalCount nodes { committedDate } pageInfo { hasNextPage endCursor } }`;
  return { text, variables, what: 'the history' };
}

function pageAlias(index: number): string {
  return `h${index}`;
}

const perPage = 100;
const pathsPerQuery = 100;
const leapsPerQuery = 400;
// The whole query, then halves and quarters, if the host gives up on it.
const tries = 3;

interface HistoriesRequest {
  readonly repository: RepositoryName;
  readonly commit: string;
  readonly paths: readonly string[];
  readonly signal: AbortSignal;
}

/** A history that continues after a page. */
interface LongHistory {
  readonly path: string;
  /** The cursor at the end of the page. */
  readonly end: string;
  readonly totalCount: number;
}

/** A page that has only the last commit of a history, if its guessed cursor is right. */
interface Leap extends HistoryPage {
  readonly history: LongHistory;
}

/** Requests a hundred paths at once, because most histories fit into one page. A later query requests the last page of longer ones. */
export async function addFirstDates(askGraphql: AskGraphql, request: HistoriesRequest, dates: Map<string, number>): Promise<void> {
  /** Takes the pages of each query when it is answered, so that their dates are kept if another query fails. */
  async function read<P extends HistoryPage>(
    pages: readonly P[], perQuery: number, take: (answer: Answer<P>) => LongHistory[],
  ): Promise<LongHistory[]> {
    const count = Math.ceil(pages.length / perQuery);
    const queries = Array.from({ length: count }, (_, index) => pages.slice(index * perQuery, (index + 1) * perQuery));
    const taken = queries.map(async (query) => (await askPages(askGraphql, request, query, tries)).flatMap(take));
    return (await Promise.all(taken)).flat();
  }

  /** Reads the next page of histories. Returns those that continue after it. */
  const walk = (pages: readonly HistoryPage[]): Promise<LongHistory[]> =>
    read(pages, pathsPerQuery, ({ asked: { path, after }, page }) => {
      if (page === 'refused') throw failed('it refused a query');
      const { totalCount, nodes, pageInfo: { hasNextPage, endCursor: end } } = page;
      const oldest = nodes.at(-1);
      if (!hasNextPage && oldest !== undefined) {
        dates.set(path, oldest.committedDate);
        return [];
      }
      const hasNoHistory = after === null && totalCount === 0;
      if (hasNoHistory) return [];
      if (end === null || end === after || oldest === undefined) throw failed('a history in its response is incomplete');
      return [{ path, end, totalCount }];
    });

  /** Reads the last commit of histories. Returns those whose cursor was not guessed. */
  const leap = (leaps: readonly Leap[]): Promise<LongHistory[]> =>
    read(leaps, leapsPerQuery, ({ asked: { path, history }, page }) => {
      const [last, ...others] = page === 'refused' || page.pageInfo.hasNextPage ? [] : page.nodes;
      if (last === undefined || others.length > 0) return [history];
      dates.set(path, last.committedDate);
      return [];
    });

  let long = await walk(request.paths.map((path) => ({ path, first: perPage, after: null })));
  const leaps = long.flatMap(leapOver);
  // The cursors of a host have one form.
  if (leaps.length === long.length) long = await leap(leaps);
  while (long.length > 0) long = await walk(long.map(({ path, end }) => ({ path, first: perPage, after: end })));
}

interface Answer<P extends HistoryPage> {
  readonly asked: P;
  /** A guessed cursor that does not exist is one reason for a refusal. It is of the whole query. */
  readonly page: GraphqlHistory | 'refused';
}

/** Returns an answer for each page. */
async function askPages<P extends HistoryPage>(
  ask: AskGraphql, request: HistoriesRequest, pages: readonly P[], triesLeft: number,
): Promise<readonly Answer<P>[]> {
  try {
    const query = historiesQuery(request.repository, request.commit, pages);
    const { data, errors } = await ask(query, request.signal);
    if (errors.length > 0) return pages.map((asked) => ({ asked, page: 'refused' }));
    const histories = parse(GraphqlHistories, data, query.what).repository?.object;
    if (histories === null || histories === undefined) throw failed('the commit that it returned before is missing');
    return pages.map((asked, index) => ({ asked, page: pageOf(histories, index) }));
  } catch (error) {
    if (!(error instanceof TooHeavy) || triesLeft === 1) throw error;
    const middle = Math.ceil(pages.length / 2);
    const halves = [pages.slice(0, middle), pages.slice(middle)].filter(({ length }) => length > 0);
    return (await Promise.all(halves.map((half) => askPages(ask, request, half, triesLeft - 1)))).flat();
  }
}

function pageOf(histories: Readonly<Record<string, GraphqlHistory>>, index: number): GraphqlHistory {
  const page = histories[pageAlias(index)];
  if (page === undefined) throw failed('a requested history is missing in its response');
  return page;
}

/** Guesses the cursor before a history's last commit, from GitHub's undocumented format. No leap if the cursor has another format. */
function leapOver(history: LongHistory): Leap[] {
  const { path, end, totalCount } = history;
  const id = /^([0-9a-f]{40,64}) \d+$/u.exec(end)?.[1];
  return id === undefined ? [] : [{ path, first: 1, after: `${id} ${totalCount - 2}`, history }];
}
