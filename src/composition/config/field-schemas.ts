import { z } from 'zod';
import { durationUnits, parseQuantity, sizeUnits } from '../../client/quantities.ts';

// A schema's description says which values its field accepts, with an example. A field marked `secret` can contain a secret: its value, and
// the values below it, are never shown. A number with a `unit`, `duration` or `size`, is shown as it is written.

export const durationForm = (example: string): string =>
  `a duration, which is a number above 0 with its unit (ms, s, m, h or d), for example ${example}`;

/** 100 years. A duration must lead to a time that a `Date` can have. */
const longestDurationMs = 36_500 * durationUnits.d;

/** Milliseconds. */
export const duration = (example: string) =>
  quantity('duration', durationUnits, { value: longestDurationMs, problem: 'is longer than 100 years' }).describe(durationForm(example));

/** Bytes. */
export const size = (example: string) => quantity('size', sizeUnits, null)
  .describe(`a size, which is a number above 0 with its unit (KiB, MiB, GiB, or KB, MB, GB), for example ${example}`);

export const positiveInteger = (example: string, of = '') =>
  z.int().positive().describe(`a whole number ${of === '' ? '' : `of ${of} `}of at least 1, for example ${example}`);

export const portNumber = () => z.int().min(1).max(65_535).describe('a port from 1 to 65535, for example 8000');

export const variableName = z.string()
  .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'is not a variable name (letters, digits and _, without a digit at the beginning)');

export const variables = (form: string) =>
  z.record(variableName, z.string().describe('a text, for example "1"')).meta({ description: form, secret: true });

/** A program and its arguments. An argument can be a password. */
export const command = (example: string) => z.array(z.string().describe('a text, for example "8000"')).min(1)
  .meta({ description: `a list of texts, the program and each of its arguments, for example ${example}`, secret: true });

/** A limit, or `unlimited`, which becomes null. */
export const orUnlimited = <Input>(limit: z.ZodType<number, Input>) =>
  z.union([z.literal('unlimited').transform(() => null), limit]).describe(`${limit.description}, or unlimited`);

function quantity(
  name: 'duration' | 'size', units: Readonly<Record<string, number>>, max: { readonly value: number; readonly problem: string } | null,
): z.ZodType<number, string> {
  const message = (input: unknown): string => {
    const isNumber = typeof input === 'number' || (typeof input === 'string' && /^\d+(\.\d+)?$/.test(input.trim()));
    return isNumber ? 'has no unit' : `is not a ${name}`;
  };
  return z.string({ error: ({ input }) => message(input) }).transform((input, context) => {
    const value = parseQuantity(input, units);
    const isAboveMax = value !== null && max !== null && value > max.value;
    if (value !== null && !isAboveMax) return value;
    context.addIssue({ code: 'custom', message: isAboveMax ? max.problem : message(input) });
    return z.NEVER;
  }).meta({ unit: name });
}

export function omitUndefined<T extends object>(values: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the members that are left keep their types
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as ReturnType<typeof omitUndefined<T>>;
}

export function omit<T extends object, Name extends keyof T & string>(values: T, names: readonly Name[]): Omit<T, Name> {
  const omitted: ReadonlySet<string> = new Set(names);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the members that are left keep their types
  return Object.fromEntries(Object.entries(values).filter(([name]) => !omitted.has(name))) as Omit<T, Name>;
}
