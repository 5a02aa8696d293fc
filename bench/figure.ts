/** One result of the benchmark: the measured value, with its limit or its peer, which is measured in the same run. */
export interface Figure {
  readonly name: string;
  /** With its unit: `12.3 ms`. */
  readonly measured: string;
  /** The value of the peer or the limit, with its unit. */
  readonly reference: string;
  /** Null if nothing is compared. */
  readonly ratio: number | null;
  /** `<= 1.3`. Null if the figure is only reported. */
  readonly bound: string | null;
  readonly ok: boolean;
  readonly note?: string;
}

export type Bound = { readonly atMost: number } | { readonly atLeast: number };

/** Returns a figure with a ratio and its bound. */
export function boundedFigure(
  texts: Pick<Figure, 'name' | 'measured' | 'reference' | 'note'>,
  ratio: number,
  bound: Bound,
): Figure {
  if ('atMost' in bound) return { ...texts, ratio, bound: `<= ${bound.atMost}`, ok: ratio <= bound.atMost };
  return { ...texts, ratio, bound: `>= ${bound.atLeast}`, ok: ratio >= bound.atLeast };
}

/** Returns the median. Of an even number of values, it is the upper of the two in the middle. */
export function median(values: readonly number[]): number {
  const middle = values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];
  if (middle === undefined) throw new Error('there is no median of nothing');
  return middle;
}

/** Returns a percentile. */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const value = sorted[Math.min(sorted.length - 1, Math.ceil((percent / 100) * sorted.length) - 1)];
  if (value === undefined) throw new Error('there is no percentile of nothing');
  return value;
}

/** `12.3 ms, p95 15.0, p99 20.1` */
export function spread(values: readonly number[]): string {
  return `${inMs(percentile(values, 50))}, p95 ${percentile(values, 95).toFixed(1)}, p99 ${percentile(values, 99).toFixed(1)}`;
}

export function inMs(ms: number): string {
  return `${ms.toFixed(ms < 10 ? 2 : 1)} ms`;
}

/** Returns the duration of the work, in milliseconds. */
export async function timed(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

/** Returns two lines of plain text: the name and whether the bound holds, then the measured values. */
export function formatFigure({ name, measured, reference, ratio, bound, ok, note }: Figure): string {
  const verdict = [ratio?.toFixed(2) ?? '', bound === null ? '' : `(bound ${bound})`].filter((text) => text !== '').join(' ');
  const basis = [reference === '' ? measured : `${measured} beside ${reference}`, note ?? ''].filter((text) => text !== '').join('; ');
  return `${(ok ? 'ok' : 'MISSED').padEnd(8)}${name}${verdict === '' ? '' : `: ${verdict}`}\n        ${basis}\n`;
}
