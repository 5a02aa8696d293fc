import { inMs } from '../figure.ts';

/** The value that so many percent of the values do not exceed. */
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
