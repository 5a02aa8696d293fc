import type { z } from 'zod';
import { damagedRecord } from './sqlite-error.ts';

/** Reads a JSON column. Fails with `store_unavailable` where it holds something else. */
export function parseColumn<T>(schema: z.ZodType<T>, text: string): T {
  try {
    return schema.parse(JSON.parse(text));
  } catch (error) {
    throw damagedRecord(error);
  }
}

export function parseOrNull<T>(schema: z.ZodType<T>, text: string | null): T | null {
  return text === null ? null : parseColumn(schema, text);
}

export function jsonOrNull(value: unknown): string | null {
  return value === null ? null : JSON.stringify(value);
}

/**
 * Reads a JSON column whose texts repeat, such as the spec that many sandboxes were started from. Remembers the latest
 * ones, since to recognise a text is far cheaper than to parse it.
 */
export function columnReader<T>(schema: z.ZodType<T>, capacity = 256): (text: string) => T {
  const known = new Map<string, T>();
  return (text) => {
    const found = known.get(text);
    if (found !== undefined) return found;
    const value = parseColumn(schema, text);
    if (known.size >= capacity) known.clear();
    known.set(text, value);
    return value;
  };
}

/** Reads a column that holds one of these words. */
export function wordOf<T extends string>(words: readonly T[], text: string): T {
  const word = words.find((candidate) => candidate === text);
  if (word === undefined) throw damagedRecord();
  return word;
}

export function wordOrNull<T extends string>(words: readonly T[], text: string | null): T | null {
  return text === null ? null : wordOf(words, text);
}
