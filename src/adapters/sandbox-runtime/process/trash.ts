import { discarded, removeTree } from './folders.ts';
import { sandboxLayout, type Layout } from './layout.ts';
import type { ProcessTable } from './process-table.ts';
import { readLastLaunch } from './records.ts';
import { killAll } from './signals.ts';

/** Ends the processes of discarded sandboxes: of one, or of all. Answers with the folders that are left to remove. */
export async function endDiscarded(layout: Layout, table: ProcessTable, id?: string): Promise<string[]> {
  const folders = await discarded(layout, id);
  for (const folder of folders) {
    const record = await readLastLaunch(sandboxLayout(folder).launches);
    const claim = record === null || record === 'absent' || record.gone ? null : record.claim;
    if (claim !== null) await killAll(table, claim);
  }
  return folders;
}

export async function removeDiscarded(folders: readonly string[]): Promise<void> {
  for (const folder of folders) await removeTree(folder);
}
