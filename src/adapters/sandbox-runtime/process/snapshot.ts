import type { ProcessEntry, ProcessTable } from './process-table.ts';

/** The table with one look at all processes, taken when it is first needed: for questions about many sandboxes at once. */
export function createSnapshot(table: ProcessTable): ProcessTable {
  let taken: Promise<readonly ProcessEntry[]> | undefined;
  const all = (): Promise<readonly ProcessEntry[]> => (taken ??= table.all());
  return {
    ...table,
    all,
    // `/proc` tells of one process for less than of all; `ps` costs a process each time.
    find: async (pid) =>
      table.kind === 'proc' ? table.find(pid) : ((await all()).find((process) => process.pid === pid) ?? null),
  };
}
