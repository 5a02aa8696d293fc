import { z } from 'zod';
import { camelCase, type CamelCase } from '../shared/snake-case.ts';
import { toTimestamp } from './common-schemas.ts';

/** The input from which a value of the schema is made: names in camel case, times in milliseconds since the epoch. */
type Source<S> = S extends z.ZodISODateTime
  ? number
  : S extends z.ZodNullable<infer Inner>
    ? Source<Inner> | null
    : S extends z.ZodArray<infer Item>
      ? readonly Source<Item>[]
      : S extends z.ZodObject<infer Fields>
        ? { readonly [K in keyof Fields & string as CamelCase<K>]: Source<Fields[K]> }
        : z.output<S>;

/**
 * Returns a function that converts an application value into the form of a response schema: names in snake case, times as text. It omits
 * fields that the schema does not have, so no undeclared field is sent. If the value has other fields than the schema, `sourceOf` makes
 * them.
 */
export function presenter<S extends z.ZodType>(schema: S): (source: Source<S>) => z.output<S>;
export function presenter<S extends z.ZodType, Args extends readonly unknown[]>(
  schema: S, sourceOf: (...args: Args) => Source<S>,
): (...args: Args) => z.output<S>;
export function presenter(schema: z.ZodType, sourceOf: (...args: readonly unknown[]) => unknown = (source) => source) {
  const convert = converterOf(schema);
  return (...args: readonly unknown[]) => convert(sourceOf(...args));
}

type Convert = (value: unknown) => unknown;

function converterOf(schema: z.core.$ZodType): Convert {
  if (schema instanceof z.ZodISODateTime) return (value) => toTimestamp(Number(value));
  if (schema instanceof z.ZodNullable) {
    const convert = converterOf(schema.unwrap());
    return (value) => (value === null ? null : convert(value));
  }
  if (schema instanceof z.ZodArray) {
    const convert = converterOf(schema.element);
    return (value) => (Array.isArray(value) ? value.map((item) => convert(item)) : value);
  }
  if (schema instanceof z.ZodObject && schema.def.catchall === undefined) {
    const fields = Object.entries(schema.shape).map(([name, field]) => ({ name, source: camelCase(name), convert: converterOf(field) }));
    return (value) => {
      const source = Object(value);
      const made: Record<string, unknown> = {};
      for (const field of fields) made[field.name] = field.convert(source[field.source]);
      return made;
    };
  }
  return (value) => value;
}
