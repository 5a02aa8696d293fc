import type { Api, ProjectName } from './api.ts';
import { changesBetween, trunkBetween } from './commits-between.ts';
import type { Dates, Snapshot } from './snapshot.ts';
import { readTree, type Tree } from './tree.ts';

export interface ChangeRequest {
  readonly project: ProjectName;
  readonly sha: string;
  readonly directory: string;
  readonly maxFiles: number;
}

/**
 * A directory at a commit, with those dates of an earlier one that hold on. What they are is what the host would say:
 * its history of a path leaves a merge by the first parent that has the path as it is after the merge, and shows every
 * other commit that changes it. So, on the way along the first parents back to the earlier commit, a path goes on with
 * the history that it had there, unless a merge changes it.
 */
export async function readSince(api: Api, request: ChangeRequest, earlier: Snapshot | null): Promise<Snapshot> {
  const { project, sha, directory } = request;
  const fresh = async (): Promise<Snapshot> => ({ sha, tree: await readTree(api, request), dates: new Map() });
  const worth = earlier?.dates.size ?? 0;
  if (earlier === null || worth === 0) return await fresh();
  // No more requests than there are dates to be asked for again.
  const maxPages = Math.min(worth, 10);
  const between = { project, from: earlier.sha, to: sha };
  const trunk = await trunkBetween(api, between, maxPages);
  if (trunk === null) return await fresh();
  if (!trunk.some(isMerge)) return keeping(sha, await readTree(api, request), earlier.dates, new Set());

  const changes = await changesBetween(api, between, directory, maxPages);
  if (changes === null) return await fresh();
  if (changes.length === 0) return { ...earlier, sha };
  const tree = await readTree(api, request);
  const steps = changes.toReversed().map((commit) => ({ sha: commit.id, isMerge: isMerge(commit) }));
  const merged = await mergedPaths(api, request, steps, earlier.tree, tree, worth);
  return keeping(sha, tree, merged === null ? new Map() : earlier.dates, merged ?? new Set());
}

function isMerge({ parent_ids: parents }: { readonly parent_ids: readonly string[] }): boolean {
  return parents.length > 1;
}

interface Step {
  readonly sha: string;
  readonly isMerge: boolean;
}

/** The paths that merges change; null where it is cheaper to ask for all dates again. The oldest step comes first. */
async function mergedPaths(
  api: Api,
  request: ChangeRequest,
  steps: readonly Step[],
  before: Tree,
  after: Tree,
  worth: number,
): Promise<Set<string> | null> {
  const isNeeded = (index: number): boolean => steps[index]?.isMerge === true || steps[index + 1]?.isMerge === true;
  const between = steps.slice(0, -1).filter((_, index) => isNeeded(index));
  if (between.length * Math.ceil((after.size + 1) / 100) >= worth) return null;
  const trees = new Map<string, Tree>();
  for (const { sha } of between) trees.set(sha, await readTree(api, { ...request, sha }));
  const treeAfter = (index: number): Tree | undefined => {
    if (index < 0) return before;
    return index === steps.length - 1 ? after : trees.get(steps[index]?.sha ?? '');
  };
  const merged = new Set<string>();
  for (const [index, step] of steps.entries()) {
    if (step.isMerge) for (const path of difference(treeAfter(index - 1), treeAfter(index))) merged.add(path);
  }
  return merged;
}

function difference(before: Tree | undefined, after: Tree | undefined): string[] {
  const paths = new Set([...(before?.keys() ?? []), ...(after?.keys() ?? [])]);
  return [...paths].filter((path) => before?.get(path) !== after?.get(path));
}

/** The dates of the files that are in the tree, but for those that have to be asked for again. */
function keeping(sha: string, tree: Tree, dates: Dates, again: ReadonlySet<string>): Snapshot {
  return { sha, tree, dates: new Map([...dates].filter(([path]) => tree.has(path) && !again.has(path))) };
}
