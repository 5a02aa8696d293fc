import type { z } from 'zod';
import { Failure, type RequestProblem } from '../../../domain/failure.ts';
import { problemsOf } from './problems.ts';

const placeholder = /\{(\w+)\}/g;

/** Placeholders whose value may hold slashes, written as they are or encoded. */
const spanning = new Set(['repository_name']);

/**
 * A regular expression for the path template of an operation, matched against the path as it was sent. What stands in a
 * placeholder is judged by the operation, so that a malformed name is told apart from an unknown route.
 */
export function pathPattern(template: string): RegExp {
  return compiled(template, (name) => (spanning.has(name) ? '.*' : '[^/]+'));
}

/** Reads a path as it was sent into what the schema describes. Failure: `invalid_request`. */
export function pathReader<T extends z.ZodObject>(template: string, schema: T): (path: string) => z.output<T> {
  const names = [...template.matchAll(placeholder)].map(([, name = '']) => name);
  const pattern = compiled(template, (name) => (spanning.has(name) ? '(.*)' : '([^/]+)'));
  return (path) => {
    const given = names.length === 0 ? {} : decodedValues(names, pattern.exec(path)?.slice(1) ?? []);
    const parsed = schema.safeParse(given);
    if (!parsed.success) throw new Failure('invalid_request', { problems: problemsOf('path', parsed.error) });
    return parsed.data;
  };
}

const plainTarget = /^\/[^#]*$/;

/** The target of a request as a path with a query, whatever form it was sent in: without scheme, authority and fragment. */
export function originForm(target: string): string {
  if (plainTarget.test(target)) return target;
  return target
    .replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i, '')
    .replace(/#.*$/s, '')
    .replace(/^(?=\?|$)/, '/');
}

/** The path of a target in its origin form. */
export function pathOf(target: string): string {
  const question = target.indexOf('?');
  return question === -1 ? target : target.slice(0, question);
}

/** The query of a target in its origin form, without its question mark. */
export function queryOf(target: string): string {
  const question = target.indexOf('?');
  return question === -1 ? '' : target.slice(question + 1);
}

function compiled(template: string, valueOf: (name: string) => string): RegExp {
  const parts = template.split(placeholder);
  const source = parts.map((part, index) => (index % 2 === 0 ? part.replaceAll('.', '\\.') : valueOf(part))).join('');
  return new RegExp(`^${source}$`, 's');
}

function decodedValues(names: readonly string[], values: readonly string[]): Record<string, string> {
  const given: Record<string, string> = {};
  const problems: RequestProblem[] = [];
  for (const [index, name] of names.entries()) {
    try {
      given[name] = decodeURIComponent(values[index] ?? '');
    } catch {
      problems.push({ loc: ['path', name], msg: 'must be percent-encoded UTF-8', type: 'percent_encoding' });
    }
  }
  if (problems.length > 0) throw new Failure('invalid_request', { problems });
  return given;
}
