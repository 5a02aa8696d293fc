/** In what GitHub's GraphQL API may differ from what a client hopes. */
export interface GraphqlHabits {
  /** Where a cursor that was made up leads: to its place, to the beginning, or to an error. */
  cursors: 'honoured' | 'ignored' | 'refused';
  /** Is a cursor a commit's id and a number, or something that nobody can read? */
  cursorForm: 'counted' | 'opaque';
  /** A query that asks for more histories than that is given up. */
  mostHistories: number | null;
  /** So is one that asks for trees, if it is false. */
  tellsTrees: boolean;
  /** How the host says that it gives up. */
  givesUpWith: 'status' | 'error' | 'limit';
}

export function goodHabits(): GraphqlHabits {
  return { cursors: 'honoured', cursorForm: 'counted', mostHistories: null, tellsTrees: true, givesUpWith: 'status' };
}
