import { failed, isTooHeavy, parseValue, reasons } from './github-failures.ts';
import { GraphqlHistories, type GraphqlHistory } from './github-schemas.ts';
import { historiesQuery, pageAlias, type AskGraphql, type HistoryPage } from './graphql-queries.ts';
import type { RepositoryName } from './github-listing.ts';

/** Finds the first commits of many paths. */
export interface CommitHistories {
  addDates(
    repository: RepositoryName,
    head: string,
    paths: readonly string[],
    dates: Map<string, number>,
    signal: AbortSignal,
  ): Promise<void>;
}

/** A page to ask for. With `leap` it is assumed to be the last one; if it is not, paging goes on from the cursor `leap`. */
interface Step extends HistoryPage {
  readonly leap?: string;
}

const perPage = 100;
const pathsPerQuery = 100;
// The whole query, then halves and quarters, if the host gives up on it.
const tries = 3;

/**
 * Most histories fit into one page, so one query finds the first commits of a hundred paths. It also returns the length of
 * each longer history, and so the cursor of its last page, which is asked for together with other paths or in one more query.
 */
export function createCommitHistories(askGraphql: AskGraphql, concurrency: number): CommitHistories {
  return {
    async addDates(repository, head, paths, dates, signal) {
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
    },
  };

  /** Returns a page for each step. Null if the host refused it, which may happen to the cursor of a leap. */
  async function askFor(
    repository: RepositoryName,
    head: string,
    steps: readonly Step[],
    triesLeft: number,
    signal: AbortSignal,
  ): Promise<(readonly [Step, GraphqlHistory | null])[]> {
    try {
      const query = historiesQuery(repository, head, steps);
      const { data, errors } = await askGraphql(query, signal);
      if (errors.length > 0) return steps.map((step) => [step, refused(step)] as const);
      const histories = parseValue(GraphqlHistories, data, query.what).repository?.object;
      if (histories === null || histories === undefined) throw failed(reasons.lostCommit);
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
  if (page === undefined) throw failed(reasons.missingHistory);
  return page;
}

function refused({ leap }: Step): null {
  if (leap === undefined) throw failed(reasons.queryRefused);
  return null;
}

function pageOn({ path, leap }: Step): Step {
  return { path, first: perPage, after: leap ?? null };
}

/** Returns the date, the next step towards it, or null if the path has no history. */
function follow(step: Step, { totalCount, nodes, pageInfo }: GraphqlHistory): number | Step | null {
  const { path, after, leap } = step;
  const { hasNextPage, endCursor } = pageInfo;
  const oldest = nodes.at(-1)?.committedDate;
  if (leap !== undefined && (hasNextPage || nodes.length !== 1)) return pageOn(step);
  if (!hasNextPage && oldest !== undefined) return oldest;
  if (after === null && totalCount === 0) return null;
  if (endCursor === null || endCursor === after || nodes.length === 0) throw failed(reasons.brokenHistory);
  const last = after === null ? lastCursor(endCursor, totalCount) : null;
  return last === null ? { path, first: perPage, after: endCursor } : { path, first: 1, after: last, leap: endCursor };
}

/**
 * The cursor after which only the first commit comes: a commit's id and a number that counts from 0. GitHub does not
 * document this form. Null if the cursor is of another form.
 */
function lastCursor(cursor: string, totalCount: number): string | null {
  const id = /^([0-9a-f]{40,64}) \d+$/u.exec(cursor)?.[1];
  return id === undefined ? null : `${id} ${totalCount - 2}`;
}
