import type { z } from 'zod';
import { malformed } from './failures.ts';

/** Reads an answer in JSON. Throws `provider_failed` where it is not what is documented about `what`. */
export function parseJson<T>(schema: z.ZodType<T>, text: string | null, what: string): T {
  return parseValue(schema, jsonOf(text, what), what);
}

export function parseValue<T>(schema: z.ZodType<T>, value: unknown, what: string): T {
  const { success, data } = schema.safeParse(value);
  if (!success) throw malformed(what);
  return data;
}

function jsonOf(text: string | null, what: string): unknown {
  try {
    return JSON.parse(text ?? '');
  } catch {
    throw malformed(what);
  }
}
