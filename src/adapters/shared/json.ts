import type { z } from 'zod';

/** Returns null if the text is no JSON. */
export function jsonOrNull(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Returns undefined if the text is no JSON, or does not match the schema. */
export function parseJson<T>(schema: z.ZodType<T>, text: string): T | undefined {
  return schema.safeParse(jsonOrNull(text)).data;
}
