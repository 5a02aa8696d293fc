import { copyFile, open, stat, truncate, type FileHandle } from 'node:fs/promises';
import { errorCode } from './file-errors.ts';
import { sandboxIds } from './folders.ts';
import type { Layout } from './layout.ts';

/** Opens the log to write at its end, which stays the end when the log is cut. */
export function openLog(file: string): Promise<FileHandle> {
  return open(file, 'a', 0o600);
}

/**
 * Cuts a log that has grown past the limit: what it holds goes to `<file>.old`, in place of what was there. What is
 * written in that very moment may be lost.
 */
export async function cutLog(file: string, limitBytes: number): Promise<void> {
  try {
    if ((await stat(file)).size <= limitBytes) return;
    await copyFile(file, `${file}.old`);
    await truncate(file, 0);
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error;
  }
}

const cutEveryMs = 10_000;

/** Cuts the logs of all sandboxes now and then; without it, nothing does. Answers with the function that ends it. */
export function keepLogsSmall(layout: Layout, limitBytes: number): () => void {
  const cutAll = async (): Promise<void> => {
    for (const id of await sandboxIds(layout)) await cutLog(layout.sandbox(id).log, limitBytes);
  };
  // What can't be cut now is tried again the next time.
  const timer = setInterval(() => void cutAll().catch(() => {}), cutEveryMs).unref();
  return () => clearInterval(timer);
}
