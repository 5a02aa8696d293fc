import { z } from 'zod';
import { jsonOrNull } from './json.ts';
import type { Tree } from './tree.ts';

/** What is known of a directory at a commit. */
export interface Snapshot {
  readonly sha: string;
  readonly tree: Tree;
  readonly dates: Dates;
}

/**
 * The dates, in ms, of those files whose first commit is known. Null is for a file that has none, so far as the host can
 * tell; the list leaves it out.
 */
export type Dates = ReadonlyMap<string, number | null>;

const Kept = z.object({
  version: z.literal(1),
  sha: z.string(),
  files: z.array(z.tuple([z.string(), z.string()]).rest(z.number().nullable())),
});

export function writeSnapshot({ sha, tree, dates }: Snapshot): string {
  const files = [...tree].map(([path, mark]) => (dates.has(path) ? [path, mark, dates.get(path)] : [path, mark]));
  return JSON.stringify({ version: 1, sha, files });
}

/** Null where the text is not what `writeSnapshot` writes. */
export function readSnapshot(text: string): Snapshot | null {
  const { success, data } = Kept.safeParse(jsonOrNull(text));
  if (!success) return null;
  const dates = new Map<string, number | null>();
  for (const [path, , date] of data.files) if (date !== undefined) dates.set(path, date);
  return { sha: data.sha, tree: new Map(data.files.map(([path, mark]) => [path, mark])), dates };
}
