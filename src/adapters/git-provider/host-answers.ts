import { z } from 'zod';
import { oidForm } from '../shared/git-process.ts';

export const Oid = z.string().regex(oidForm);

// The last millisecond that RFC 3339 can write as a whole second; git's dates go further.
const lastDate = 253_402_300_799_000;

/** A date, in ms. One that RFC 3339 can't write is the nearest that it can, not before the epoch. */
export const CommitDate = z.string().transform((text, context) => {
  if (/^\+?\d{5,}-/u.test(text)) return lastDate;
  const ms = Date.parse(text);
  if (!Number.isNaN(ms)) return Math.max(0, ms);
  context.addIssue('not a date');
  return z.NEVER;
});

export function jsonOrNull(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Returns where the header `Link` leads. Null if it has no such relation. */
export function linkIn(headers: Headers, relation: 'next' | 'last'): string | null {
  return new RegExp(`<([^<>]*)>\\s*;[^,]*\\brel="?${relation}\\b`, 'u').exec(headers.get('link') ?? '')?.[1] ?? null;
}
