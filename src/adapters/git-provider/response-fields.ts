import { z } from 'zod';
import { oidForm } from '../shared/git-process.ts';

export const Oid = z.string().regex(oidForm);

// The last whole second that RFC 3339 can represent, in milliseconds. Git has later dates.
const lastDate = 253_402_300_799_000;

/** A date, in milliseconds, limited to the range from the epoch to the last date of RFC 3339. */
export const CommitDate = z.string().transform((text, context) => {
  if (/^\+?\d{5,}-/u.test(text)) return lastDate;
  const ms = Date.parse(text);
  if (!Number.isNaN(ms)) return Math.max(0, ms);
  context.addIssue('not a date');
  return z.NEVER;
});

/** Returns the target of a relation in the header `Link`. Null if there is no such relation. */
export function linkIn(headers: Headers, relation: 'next' | 'last'): string | null {
  return new RegExp(`<([^<>]*)>\\s*;[^,]*\\brel="?${relation}\\b`, 'u').exec(headers.get('link') ?? '')?.[1] ?? null;
}
