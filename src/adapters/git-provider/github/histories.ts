import { failed, isTooHeavy } from './failures.ts';
import type { Graphql } from './graphql.ts';
import type { RepositoryName } from './name.ts';
import { parseValue } from './parse.ts';
import { historiesQuery, pageAlias, type HistoryPage } from './queries.ts';
import { GraphqlHistories, type GraphqlHistory } from './schema.ts';
import type { Dates } from './source.ts';

/** Finds the first commits of many paths. */
export interface Histories {
  datesOf(repository: RepositoryName, head: string, paths: readonly string[], signal: AbortSignal): Promise<Dates>;
}

/** A page to ask for. Where `leap` is given, it is one that is assumed to be the last; if not, paging goes on from there. */
interface Step extends HistoryPage {
  readonly leap?: string;
}

const perPage = 100;
const pathsPerQuery = 100;
// The first try, and what may follow it where the host gives up on the query.
const tries = 3;

/**
 * Most histories fit into one page, so that one query for each hundred paths tells all their first commits. Of longer ones
 * the length is known then, and with it the cursor of the last commit: those travel with later queries, or in one more.
 */
export function createHistories(graphql: Graphql, concurrency: number): Histories {
  return {
    async datesOf(repository, head, paths, signal) {
      const dates = new Map<string, number>();
      const fresh = paths.map((path): Step => ({ path, first: perPage, after: null }));
      const long: Step[] = [];
      const mostLong = pathsPerQuery * concurrency;

      async function work(): Promise<void> {
        while (fresh.length > 0) {
          await take([...fresh.splice(0, pathsPerQuery), ...long.splice(0, mostLong)]);
        }
      }

      async function take(steps: readonly Step[]): Promise<void> {
        for (const [step, page] of await askFor(repository, head, steps, tries, signal)) {
          const next = page === null ? pageOn(step) : follow(step, page);
          if (typeof next === 'number') dates.set(step.path, next);
          else if (next !== null) long.push(next);
        }
      }

      await Promise.all(Array.from({ length: concurrency }, work));
      while (long.length > 0) await take(long.splice(0, mostLong));
      return dates;
    },
  };

  /** A page for each step; null where the host refused it, which it may do with the cursor of a leap. */
  async function askFor(
    repository: RepositoryName,
    head: string,
    steps: readonly Step[],
    triesLeft: number,
    signal: AbortSignal,
  ): Promise<(readonly [Step, GraphqlHistory | null])[]> {
    try {
      const query = historiesQuery(repository, head, steps);
      const { data, errors } = await graphql.ask(query, signal);
      if (errors.length > 0) return steps.map((step) => [step, refused(step)] as const);
      const histories = parseValue(GraphqlHistories, data, query.what).repository?.object;
      if (histories === null || histories === undefined) throw failed('a commit is gone that it has just named');
      return steps.map((step, index) => [step, pageOf(histories, index)] as const);
    } catch (error) {
      if (!isTooHeavy(error) || triesLeft === 1) throw error;
      const middle = Math.ceil(steps.length / 2);
      const halves = [steps.slice(0, middle), steps.slice(middle)].filter(({ length }) => length > 0);
      const answers = await Promise.all(halves.map((half) => askFor(repository, head, half, triesLeft - 1, signal)));
      return answers.flat();
    }
  }
}

function pageOf(histories: Readonly<Record<string, GraphqlHistory>>, index: number): GraphqlHistory {
  const page = histories[pageAlias(index)];
  if (page === undefined) throw failed('it left out a history that it was asked for');
  return page;
}

function refused({ leap }: Step): null {
  if (leap === undefined) throw failed('it refused a query');
  return null;
}

function pageOn({ path, leap }: Step): Step {
  return { path, first: perPage, after: leap ?? null };
}

/** The date, the next step towards it, or null where the path has no history. */
function follow(step: Step, { totalCount, nodes, pageInfo }: GraphqlHistory): number | Step | null {
  const { path, after, leap } = step;
  const { hasNextPage, endCursor } = pageInfo;
  const oldest = nodes.at(-1)?.committedDate;
  if (leap !== undefined && (hasNextPage || nodes.length !== 1)) return pageOn(step);
  if (!hasNextPage && oldest !== undefined) return oldest;
  if (after === null && totalCount === 0) return null;
  if (endCursor === null || endCursor === after || nodes.length === 0) throw failed('it breaks off in the middle of a history');
  const last = after === null ? lastCursor(endCursor, totalCount) : null;
  return last === null ? { path, first: perPage, after: endCursor } : { path, first: 1, after: last, leap: endCursor };
}

/**
 * The cursor after which only the first commit comes: a commit's id and a number that counts from 0, in the form that
 * GitHub has, but does not document. Null where it is of another form.
 */
function lastCursor(cursor: string, totalCount: number): string | null {
  const id = /^([0-9a-f]{40,64}) \d+$/u.exec(cursor)?.[1];
  return id === undefined ? null : `${id} ${totalCount - 2}`;
}
