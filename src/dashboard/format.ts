const units: readonly (readonly [Intl.RelativeTimeFormatUnit, number])[] = [
  ['year', 31_536_000], ['month', 2_592_000], ['day', 86_400], ['hour', 3600], ['minute', 60],
];
const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto', style: 'narrow' });
const absolute = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'medium' });
const clock = new Intl.DateTimeFormat('en', { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });

/** Returns "5m ago", "in 2h" or "now". */
export function relativeTime(at: string): string {
  const seconds = (Date.parse(at) - Date.now()) / 1000;
  const [unit, size] = units.find(([, size]) => Math.abs(seconds) >= size) ?? [null, 0];
  return unit === null ? 'now' : relative.format(Math.trunc(seconds / size), unit);
}

export function absoluteTime(at: string): string {
  return absolute.format(new Date(at));
}

export function clockTime(at: string): string {
  return clock.format(new Date(at));
}

export function bytes(count: number): string {
  const power = Math.min(4, Math.floor(Math.log2(Math.max(1, count)) / 10));
  const value = count / 1024 ** power;
  return `${power === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${['B', 'KiB', 'MiB', 'GiB', 'TiB'][power]}`;
}

export function milliseconds(ms: number): string {
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}

const spans: readonly (readonly [string, number])[] = [['d', 86_400], ['h', 3600], ['min', 60], ['s', 1]];

/** Returns "1 h 30 min". */
export function duration(seconds: number): string {
  let left = seconds;
  const parts = spans.flatMap(([unit, size]) => {
    const count = Math.floor(left / size);
    left -= count * size;
    return count === 0 ? [] : [`${count} ${unit}`];
  });
  return parts.join(' ') || '0 s';
}

/** Formats a value; returns a dash if it is unknown. */
export function orNone(value: number | null | undefined, show: (value: number) => string): string {
  return value === null || value === undefined ? '–' : show(value);
}

/** Returns "1 file" or "2 files". */
export function plural(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}

const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });

export function compactNumber(count: number): string {
  return compact.format(count);
}

/** Returns the status of a sandbox as text. A paused sandbox is frozen or stopped. */
export function sandboxStatusName(status: string, pauseKind: 'freeze' | 'stop' | null): string {
  if (status !== 'PAUSED' || pauseKind === null) return readableName(status);
  return pauseKind === 'freeze' ? 'Frozen' : 'Stopped';
}

/** Returns a name of the API as text: `waiting_for_permission` as "Waiting for permission". */
export function readableName(name: string): string {
  const text = name.toLowerCase().replaceAll('_', ' ');
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Returns a title that can be seen and clicked. The API allows one that is empty. */
export function shownTitle(title: string | null, otherwise = 'Untitled'): string {
  return title?.trim() || otherwise;
}
