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

/** A page to request. With `leap`, it should be the last page. If it is not, paging continues from the cursor `leap`. */
interface Step extends HistoryPage {
  readonly leap?: string;
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

/** Requests a hundred paths at once, because most histories fit into one page. A later query requests the last page of longer ones. */
export async function addFirstDates(askGraphql: AskGraphql, request: HistoriesRequest, dates: Map<string, number>): Promise<void> {
  async function take(steps: readonly Step[]): Promise<Step[]> {
    const next: Step[] = [];
    for (const [step, page] of await askPages(askGraphql, request, steps, tries)) {
      const found = page === null ? nextPageStep(step) : follow(step, page);
      if (typeof found === 'number') dates.set(step.path, found);
      else if (found !== null) next.push(found);
    }
    return next;
  }

  let steps = request.paths.map((path): Step => ({ path, first: perPage, after: null }));
  while (steps.length > 0) {
    const size = steps.every(({ first }) => first === 1) ? leapsPerQuery : pathsPerQuery;
    const queries = Array.from({ length: Math.ceil(steps.length / size) }, (_, index) => steps.slice(index * size, (index + 1) * size));
    steps = (await Promise.all(queries.map(take))).flat();
  }
}

type Answers = readonly (readonly [Step, GraphqlHistory | null])[];

/** Returns a page for each step. Null if the host refused the guessed cursor of a leap. */
async function askPages(ask: AskGraphql, request: HistoriesRequest, steps: readonly Step[], triesLeft: number): Promise<Answers> {
  try {
    const query = historiesQuery(request.repository, request.commit, steps);
    const { data, errors } = await ask(query, request.signal);
    if (errors.length > 0) return steps.map((step) => [step, refused(step)]);
    const histories = parse(GraphqlHistories, data, query.what).repository?.object;
    if (histories === null || histories === undefined) throw failed('the commit that it returned before is missing');
    return steps.map((step, index) => [step, pageOf(histories, index)]);
  } catch (error) {
    if (!(error instanceof TooHeavy) || triesLeft === 1) throw error;
    const middle = Math.ceil(steps.length / 2);
    const halves = [steps.slice(0, middle), steps.slice(middle)].filter(({ length }) => length > 0);
    return (await Promise.all(halves.map((half) => askPages(ask, request, half, triesLeft - 1)))).flat();
  }
}

function pageOf(histories: Readonly<Record<string, GraphqlHistory>>, index: number): GraphqlHistory {
  const page = histories[pageAlias(index)];
  if (page === undefined) throw failed('a requested history is missing in its response');
  return page;
}

function refused({ leap }: Step): null {
  if (leap === undefined) throw failed('it refused a query');
  return null;
}

function nextPageStep({ path, leap }: Step): Step {
  return { path, first: perPage, after: leap ?? null };
}

/** Returns the date, the next step towards it, or null if the path has no history. */
function follow(step: Step, { totalCount, nodes, pageInfo }: GraphqlHistory): number | Step | null {
  const { path, after, leap } = step;
  const { hasNextPage, endCursor } = pageInfo;
  const oldest = nodes.at(-1)?.committedDate;
  if (leap !== undefined && (hasNextPage || nodes.length !== 1)) return nextPageStep(step);
  if (!hasNextPage && oldest !== undefined) return oldest;
  if (after === null && totalCount === 0) return null;
  if (endCursor === null || endCursor === after || nodes.length === 0) throw failed('a history in its response is incomplete');
  const last = after === null ? lastCursor(endCursor, totalCount) : null;
  return last === null ? { path, first: perPage, after: endCursor } : { path, first: 1, after: last, leap: endCursor };
}

/** Guesses the cursor before a history's last commit, from GitHub's undocumented format. Null if the cursor has another format. */
function lastCursor(cursor: string, totalCount: number): string | null {
  const id = /^([0-9a-f]{40,64}) \d+$/u.exec(cursor)?.[1];
  return id === undefined ? null : `${id} ${totalCount - 2}`;
}
