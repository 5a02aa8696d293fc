import { z } from 'zod';
import { takes } from './form.ts';

export const durationForm = (example: string): string =>
  `a duration, which is a number above 0 with its unit (ms, s, m, h or d), for example ${example}`;
export const sizeForm = (example: string): string =>
  `a size, which is a number above 0 with its unit (KiB, MiB, GiB, or KB, MB, GB), for example ${example}`;

/** Milliseconds. */
export const duration = (example: string): z.ZodType<number> => takes(quantity('duration', parseDuration), durationForm(example));

/** Bytes. */
export const size = (example: string): z.ZodType<number> => takes(quantity('size', parseSize), sizeForm(example));

export const positiveInteger = (example: string): z.ZodType<number> =>
  takes(z.int().positive(), `a whole number from 1 on, for example ${example}`);

export const portNumber = (): z.ZodType<number> => takes(z.int().min(1).max(65_535), 'a port from 1 to 65535, for example 8000');

export const text = (form: string): z.ZodType<string> => takes(z.string().min(1), form);

export const truth = (meaning: string): z.ZodType<boolean> => takes(z.boolean(), `true where ${meaning}, or false`);

/** The name of a variable. */
export const variable = (form: string): z.ZodType<string> => takes(variableName(), form);

/** The name of a variable. Somebody may write its value by mistake, so what was found is not shown. */
export const secretVariable = (form: string): z.ZodType<string> => takes(variableName(), form, { secret: true });

export const variables = (form: string): z.ZodType<Record<string, string>> =>
  takes(z.record(variableName(), takes(z.string(), 'a text, for example "1"')), form, { secret: true });

/** A program and its arguments. There may be a password among them. */
export const command = (example: string): z.ZodType<string[]> =>
  takes(
    z.array(takes(z.string(), 'a text, for example "8000"')).min(1),
    `a list of texts, the program and each of its arguments, for example ${example}`,
    { secret: true },
  );

/** A limit, or the word for none. */
export function orUnlimited(form: z.ZodType<number>, text: string): z.ZodType<number | null> {
  return takes(z.union([z.literal('unlimited').transform(() => null), form]), `${text}, or unlimited`);
}

function variableName(): z.ZodString {
  return z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'is no name of a variable (letters, digits and _, no digit first)');
}

function quantity(name: string, parse: (text: string) => number | null): z.ZodType<number> {
  const message = (input: unknown): string => (/^\d+(\.\d+)?$/.test(String(input).trim()) ? 'has no unit' : `is not a ${name}`);
  return z.string({ error: ({ input }) => message(input) }).transform((input, context) => {
    const value = parse(input);
    if (value !== null) return value;
    context.addIssue({ code: 'custom', message: message(input) });
    return z.NEVER;
  });
}

const durationUnits = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const sizeUnits = { B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40, KB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12 };

/** Returns the milliseconds of `250ms`, `60s`, `15m`, `2h`, `10d`; null for anything else. */
export function parseDuration(text: string): number | null {
  return parseQuantity(text, durationUnits);
}

/** Returns the bytes of `512MiB`, `2GiB`, `1GB`; null for anything else. */
export function parseSize(text: string): number | null {
  return parseQuantity(text, sizeUnits);
}

function parseQuantity(text: string, units: Readonly<Record<string, number>>): number | null {
  const match = /^(\d+(?:\.\d+)?)\s*([A-Za-z]+)$/.exec(text.trim());
  const unit = units[match?.[2] ?? ''];
  if (match === null || unit === undefined) return null;
  const value = Math.round(Number(match[1]) * unit);
  return Number.isSafeInteger(value) && value > 0 ? value : null;
}
