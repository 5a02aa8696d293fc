import { z } from 'zod';
import { parseDuration, parseSize } from './quantities.ts';

/** Milliseconds. */
export const duration = quantity('duration', parseDuration);

/** Bytes. */
export const size = quantity('size', parseSize);

export const positiveInteger = z.int('is not a whole number').positive('is not positive');

export const portNumber = z.int('is not a whole number').min(1, 'is below 1').max(65_535, 'is above 65535');

/** The name of a variable. */
export const variable = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'is not the name of a variable');

export const variables = z.record(variable, z.string({ error: 'is not a text; put numbers and booleans in quotes' }));

/** What the form takes, or the word for no limit. */
export function orUnlimited<T>(form: z.ZodType<T>): z.ZodType<T | null> {
  return z.union([z.literal('unlimited').transform(() => null), form]);
}

function quantity(name: string, parse: (text: string) => number | null): z.ZodType<number> {
  const message = `is not a ${name}`;
  return z.string({ error: message }).transform((text, context) => {
    const value = parse(text);
    if (value !== null) return value;
    context.addIssue({ code: 'custom', message });
    return z.NEVER;
  });
}
