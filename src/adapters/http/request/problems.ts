import type { z } from 'zod';
import { Failure, type RequestProblem } from '../../../domain/failure.ts';

export type Place = 'path' | 'query' | 'header' | 'body';

/** However much is wrong with a request, the answer names so many problems and quotes so many characters of a name. */
const maxProblems = 20;
const maxQuoted = 100;

/** The failure of a request with one thing wrong. */
export function invalid(loc: readonly [Place, ...(string | number)[]], msg: string, type: string): Failure<'invalid_request'> {
  return new Failure('invalid_request', { problems: [{ loc: loc.map(quoted), msg, type }] });
}

/** What zod found wrong with a part of the request. */
export function problemsOf(place: Place, error: z.ZodError): RequestProblem[] {
  const problems: RequestProblem[] = [];
  for (const issue of error.issues) {
    if (problems.length >= maxProblems) break;
    const loc = [place, ...issue.path.map(segment)];
    if (issue.code === 'unrecognized_keys') {
      for (const key of issue.keys.slice(0, maxProblems - problems.length)) {
        problems.push({ loc: [...loc, quoted(key)], msg: 'is not a field of this request', type: issue.code });
      }
    } else {
      problems.push({ loc, msg: issue.message, type: issue.code });
    }
  }
  return problems;
}

function segment(key: PropertyKey): string | number {
  return typeof key === 'number' ? key : quoted(String(key));
}

function quoted<T extends string | number>(key: T): T | string {
  return typeof key === 'string' && key.length > maxQuoted ? `${key.slice(0, maxQuoted)}...` : key;
}
