/** Milliseconds. */
export const durationUnits = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Bytes. */
export const sizeUnits = { B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40, KB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12 };

/** Parses a number with a unit (`250ms`, `2GiB`). Returns a whole number above 0, or null for any other text. */
export function parseQuantity(text: string, units: Readonly<Record<string, number>>): number | null {
  const match = /^(\d+(?:\.\d+)?)\s*([A-Za-z]+)$/.exec(text.trim());
  const unit = units[match?.[2] ?? ''];
  if (match === null || unit === undefined) return null;
  const value = Math.round(Number(match[1]) * unit);
  return Number.isSafeInteger(value) && value > 0 ? value : null;
}

/** Returns a whole number above 0 in the largest unit that divides it, in the form that `parseQuantity` reads: `512MiB`. */
export function formatQuantity(value: number, units: Readonly<Record<string, number>>): string {
  const [name, size] = Object.entries(units).toSorted(([, a], [, b]) => b - a).find(([, size]) => value % size === 0) ?? ['', 1];
  return `${value / size}${name}`;
}
