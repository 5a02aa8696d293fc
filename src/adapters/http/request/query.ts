import { z } from 'zod';
import { Failure, type RequestProblem } from '../../../domain/failure.ts';
import { problemsOf } from './problems.ts';

/** Reads the raw query of a URL (what follows the `?`) into what the schema describes. Failure: `invalid_request`. */
export function queryReader<T extends z.ZodObject>(schema: T): (raw: string) => z.output<T> {
  const kinds = new Map(Object.entries(schema.shape).map(([name, field]) => [name, isRepeated(field)]));
  return (raw) => {
    const problems: RequestProblem[] = [];
    const given = raw === '' ? {} : collect(raw, kinds, problems);
    const parsed = schema.safeParse(given);
    if (!parsed.success) problems.push(...problemsOf('query', parsed.error));
    if (!parsed.success || problems.length > 0) throw new Failure('invalid_request', { problems });
    return parsed.data;
  };
}

type Given = Record<string, string | string[]>;

/** The parameters that the schema knows; others are none of its business. */
function collect(raw: string, kinds: ReadonlyMap<string, boolean>, problems: RequestProblem[]): Given {
  const given: Given = {};
  for (const pair of raw.split('&')) {
    const equals = pair.indexOf('=');
    const name = decoded(equals === -1 ? pair : pair.slice(0, equals));
    const repeated = name === null ? undefined : kinds.get(name);
    if (name === null || repeated === undefined) continue;
    const value = equals === -1 ? '' : decoded(pair.slice(equals + 1));
    const known = given[name];
    if (value === null) {
      problems.push({ loc: ['query', name], msg: 'must be percent-encoded UTF-8', type: 'percent_encoding' });
    } else if (Array.isArray(known)) {
      known.push(value);
    } else if (repeated) {
      given[name] = [value];
    } else if (known === undefined) {
      given[name] = value;
    } else {
      problems.push({ loc: ['query', name], msg: 'must be given once only', type: 'repeated' });
    }
    if (problems.length > 0) break;
  }
  return given;
}

function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return null;
  }
}

function isRepeated(field: z.core.$ZodType): boolean {
  let inner = field;
  while (inner instanceof z.ZodOptional || inner instanceof z.ZodDefault || inner instanceof z.ZodNullable) inner = inner.unwrap();
  return inner instanceof z.ZodArray;
}
