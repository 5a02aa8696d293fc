import { exists, makeRoot } from './folders.ts';
import type { Layout } from './layout.ts';
import type { PortReservations } from './ports.ts';
import type { ProcessTable } from './process-table.ts';
import { endDiscarded, removeDiscarded } from './trash.ts';

/** Makes the runtime's folder ready, and finishes what an earlier process left half done. */
export interface Opening {
  /** Answers when no discarded sandbox runs any more. Tries again after a failure. */
  done(): Promise<void>;
  /** Waits for what still goes on. */
  close(): Promise<void>;
}

export function createOpening(layout: Layout, table: ProcessTable, ports: PortReservations): Opening {
  let opened: Promise<void> | undefined;
  let removal: Promise<void> = Promise.resolve();
  const open = async (): Promise<void> => {
    await makeRoot(layout);
    const folders = await endDiscarded(layout, table);
    await ports.releaseAll(async (owner) => !(await exists(layout.sandbox(owner).folder)));
    // Nobody has to wait for the files. What can't be removed now is tried again by the next process.
    removal = removeDiscarded(folders).catch(() => {});
  };
  const done = async (): Promise<void> => {
    opened ??= open();
    try {
      await opened;
    } catch (error) {
      opened = undefined;
      throw error;
    }
  };
  return {
    done,
    async close() {
      await opened?.catch(() => {});
      await removal;
    },
  };
}
