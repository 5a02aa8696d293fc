import { GraphQLError } from 'graphql';
import { historyOf } from '../git.ts';

/** Permitted behavior of GitHub's GraphQL API that a client must not rely on. */
export interface GraphqlBehavior {
  /** The effect of an invented cursor: its position, the beginning, or an error. */
  cursors: 'honoured' | 'ignored' | 'refused';
  /** Is a cursor a commit's id and a number, or opaque? */
  cursorForm: 'counted' | 'opaque';
  /** A query for more histories fails. */
  maxHistories: number | null;
  /** False: a query for trees fails too. */
  servesTrees: boolean;
  /** The form of the failure. */
  failsWith: 'status' | 'error' | 'limit';
}

export function usualBehavior(): GraphqlBehavior {
  return { cursors: 'honoured', cursorForm: 'counted', maxHistories: null, servesTrees: true, failsWith: 'status' };
}

export interface HistoryArguments {
  readonly path?: string | null;
  readonly first?: number | null;
  readonly after?: string | null;
}

/** A page of the commits that change a path. The double only knows pages that start at the newest commit. */
export async function historyConnection(gitDir: string, head: string, args: HistoryArguments, behavior: GraphqlBehavior) {
  const { path = null, first = null, after = null } = args;
  if (first === null || first < 1 || first > 100) throw new GraphQLError('`first` has to be within 1 and 100');
  const commits = await historyOf(gitDir, head, path);
  const start = after === null ? 0 : placeOf(after, head, behavior) + 1;
  const nodes = commits.slice(start, start + first);
  const end = start + nodes.length - 1;
  return {
    totalCount: commits.length,
    nodes: nodes.map(({ oid, committedDate }) => ({ __typename: 'Commit', oid, committedDate })),
    pageInfo: {
      hasNextPage: end < commits.length - 1,
      hasPreviousPage: start > 0,
      startCursor: nodes.length === 0 ? null : cursorOf(start, head, behavior),
      endCursor: nodes.length === 0 ? null : cursorOf(end, head, behavior),
    },
  };
}

function cursorOf(place: number, head: string, { cursorForm }: GraphqlBehavior): string {
  const counted = `${head} ${place}`;
  return cursorForm === 'counted' ? counted : Buffer.from(counted).toString('base64url');
}

/** The double only returns cursors at the end of a page of a hundred. */
function placeOf(cursor: string, head: string, { cursors, cursorForm }: GraphqlBehavior): number {
  const counted = cursorForm === 'counted' ? cursor : Buffer.from(cursor, 'base64url').toString();
  const [oid, number = ''] = counted.split(' ');
  if (oid !== head || !/^\d+$/u.test(number)) throw new GraphQLError('`after` is no cursor');
  const place = Number(number);
  const wasGiven = (place + 1) % 100 === 0;
  if (wasGiven || cursors === 'honoured') return place;
  if (cursors === 'refused') throw new GraphQLError('`after` is no cursor');
  return -1;
}
