import type { IncomingHttpHeaders } from 'node:http';
import type { z } from 'zod';
import { Failure } from '../../../domain/failure.ts';
import { problemsOf } from './problems.ts';

/** Reads the headers that the schema names into what it describes. Failure: `invalid_request`. */
export function headerReader<T extends z.ZodObject>(schema: T): (headers: IncomingHttpHeaders) => z.output<T> {
  const names = Object.keys(schema.shape);
  return (headers) => {
    const parsed = schema.safeParse(Object.fromEntries(names.map((name) => [name, headers[name.toLowerCase()]])));
    if (!parsed.success) {
      const problems = problemsOf('header', parsed.error);
      throw new Failure('invalid_request', { problems: problems.map((problem) => ({ ...problem, loc: lowerCase(problem.loc) })) });
    }
    return parsed.data;
  };
}

/** The one value of a header; null where it is absent. */
export function headerOf(headers: IncomingHttpHeaders, name: string): string | null {
  const value = headers[name];
  return (Array.isArray(value) ? value[0] : value) ?? null;
}

function lowerCase(loc: readonly (string | number)[]): (string | number)[] {
  return loc.map((segment) => (typeof segment === 'string' ? segment.toLowerCase() : segment));
}
