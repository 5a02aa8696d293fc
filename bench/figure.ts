/** One line of the benchmark: what was measured, beside its limit or peer, which was measured in the same run. */
export interface Figure {
  readonly name: string;
  /** With its unit: `12.3 ms`. */
  readonly measured: string;
  /** With its unit; what it is compared with. */
  readonly reference: string;
  /** Null where nothing is compared. */
  readonly ratio: number | null;
  /** `<= 1.3`; null where the figure is only reported. */
  readonly bound: string | null;
  readonly ok: boolean;
  readonly note?: string;
}

export type Bound = { readonly atMost: number } | { readonly atLeast: number };

/** A figure from a ratio and its bound. */
export function boundedFigure(
  texts: Pick<Figure, 'name' | 'measured' | 'reference' | 'note'>,
  ratio: number,
  bound: Bound,
): Figure {
  if ('atMost' in bound) return { ...texts, ratio, bound: `<= ${bound.atMost}`, ok: ratio <= bound.atMost };
  return { ...texts, ratio, bound: `>= ${bound.atLeast}`, ok: ratio >= bound.atLeast };
}

/** The middle one; of an even number of values, the upper of the two. */
export function median(values: readonly number[]): number {
  const middle = values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];
  if (middle === undefined) throw new Error('there is no median of nothing');
  return middle;
}

export function inMs(ms: number): string {
  return `${ms.toFixed(ms < 10 ? 2 : 1)} ms`;
}

/** The duration of a piece of work, in milliseconds. */
export async function timed(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

/** The figures as a table of plain text. */
export function formatFigures(figures: readonly Figure[]): string {
  const rows = figures.map(({ name, measured, reference, ratio, bound, ok, note }) => [
    ok ? 'ok' : 'MISSED',
    name,
    measured,
    reference,
    ratio?.toFixed(2) ?? '',
    bound ?? '',
    note ?? '',
  ]);
  const table = [['', 'figure', 'measured', 'reference', 'ratio', 'bound', 'note'], ...rows];
  const widths = table[0]?.map((_, column) => Math.max(...table.map((row) => row[column]?.length ?? 0))) ?? [];
  return table.map((row) => `${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ').trimEnd()}\n`).join('');
}
