/**
 * The known name that was most likely meant: one that differs in few letters, or in case, dashes and underscores only, or
 * the shortest that the name abbreviates (`dir` for `working_dir`, `cmd` for `command`). Null where none is near, or several are.
 */
export function nearest(name: string, known: readonly string[]): string | null {
  const meant = folded(name);
  const ranked = known
    .map((candidate) => ({ candidate, distance: distance(meant, folded(candidate)) }))
    .toSorted((a, b) => a.distance - b.distance);
  const [first] = ranked;
  if (first !== undefined && first.distance <= Math.max(1, Math.floor(meant.length / 3))) return first.candidate;
  const [shortest, next] = known.filter((candidate) => abbreviates(name.toLowerCase(), candidate.toLowerCase())).toSorted((a, b) => a.length - b.length);
  return shortest === undefined || shortest.length === next?.length ? null : shortest;
}

/** The name without what people write differently. */
export const folded = (name: string): string => name.toLowerCase().replaceAll(/[-_]/g, '');

function abbreviates(name: string, candidate: string): boolean {
  if (name.length < 3) return false;
  let found = 0;
  for (const letter of candidate) if (letter === name[found]) found += 1;
  return candidate.split('_').includes(name) || (found === name.length && candidate[0] === name[0]);
}

/** Letters to add, drop, change, or swap with their neighbour, to get from one word to the other. */
function distance(a: string, b: string): number {
  let [before, last]: [number[], number[]] = [[], Array.from({ length: b.length + 1 }, (_, column) => column)];
  for (let row = 1; row <= a.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= b.length; column += 1) {
      const changed = (last[column - 1] ?? 0) + (a[row - 1] === b[column - 1] ? 0 : 1);
      const swapped = row > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1] ? (before[column - 2] ?? 0) + 1 : Infinity;
      current.push(Math.min((last[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1, changed, swapped));
    }
    [before, last] = [last, current];
  }
  return last[b.length] ?? 0;
}
