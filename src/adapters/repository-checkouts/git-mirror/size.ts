import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';

/** How many bytes the files below a folder have; 0 where there is none. What goes away meanwhile counts nothing. */
export async function sizeOf(folder: string): Promise<number> {
  const entries = await readdir(folder, { withFileTypes: true, recursive: true }).catch(() => []);
  let bytes = 0;
  for (const entry of entries) {
    if (entry.isFile()) bytes += (await stat(join(entry.parentPath, entry.name)).catch(() => null))?.size ?? 0;
  }
  return bytes;
}

const everyMs = 500;

/** A signal that fires when the other does, and, with a failure, when the repository's objects take more than the limit. */
export function watchSize(
  gitDir: string,
  limitBytes: number,
  failure: () => Error,
  signal: AbortSignal,
): { readonly signal: AbortSignal; readonly end: () => void } {
  const tooLarge = new AbortController();
  const look = async (): Promise<void> => {
    if ((await sizeOf(join(gitDir, 'objects'))) > limitBytes) tooLarge.abort(failure());
  };
  const timer = setInterval(() => void look(), everyMs);
  return { signal: AbortSignal.any([signal, tooLarge.signal]), end: () => clearInterval(timer) };
}
