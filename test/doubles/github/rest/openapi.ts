import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv, type ValidateFunction } from 'ajv';
import formats from 'ajv-formats';
import { overlay, sampleOf } from './sample.ts';

/** Made by `update-description.ts`. */
export const descriptionFile = join(import.meta.dirname, 'github-rest.json');

/** GitHub's own description of its REST API. */
export interface Description {
  /** The query parameters of an operation. */
  queryParameters(operation: Operation): readonly string[];
  /** Returns the body of a request. Checks it against the description. */
  requestBody(operation: Operation, body: unknown): Readonly<Record<string, unknown>>;
  /** Completes the given fields to a full response with status 200 or 201. Checks it against the description. */
  complete(operation: Operation, fields: unknown): unknown;
  /** Like `complete`, for each element of an answer that is a list. */
  completeList(operation: Operation, elements: readonly unknown[]): unknown;
  /** Like `complete`, for an answer whose field `items` is a list. */
  completeItems(operation: Operation, fields: object, items: readonly unknown[]): unknown;
}

export interface Operation {
  /** `/repos/{owner}/{repo}` */
  readonly path: string;
  readonly method: 'get' | 'post' | 'patch';
}

type Json = Readonly<Record<string, unknown>>;

let loaded: Description | undefined;

/** Read once. Only the parts that are needed are compiled. */
export function githubDescription(): Description {
  loaded ??= load();
  return loaded;
}

function load(): Description {
  const document: unknown = JSON.parse(readFileSync(descriptionFile, 'utf8'));
  const ajv = new Ajv({ strict: false, validateSchema: false, allErrors: false });
  formats.default(ajv);
  ajv.addFormat('repo.nwo', true);
  ajv.addSchema(toJson(withNulls(document)), 'github', undefined, false);
  const validators = new Map<string, ValidateFunction>();

  const at = (pointer: string): unknown => lookUp(document, pointer);

  function answerPointer(operation: Operation): string {
    const responses = `${operationPointer(operation)}/responses`;
    const status = '200' in toJson(at(responses)) ? '200' : '201';
    return `${responses}/${status}/content/application~1json/schema`;
  }

  function problemWith(pointer: string, value: unknown): string | null {
    const validate = validators.get(pointer) ?? ajv.compile({ $ref: `github${pointer}` });
    validators.set(pointer, validate);
    return validate(value) ? null : ajv.errorsText(validate.errors);
  }

  function check(operation: Operation, answer: unknown): unknown {
    const problem = problemWith(answerPointer(operation), answer);
    if (problem === null) return answer;
    throw new Error(`the double's answer to ${operation.path} is none of GitHub's: ${problem}`);
  }

  const inQuery = (parameter: unknown): boolean => toJson(parameter)['in'] === 'query';
  const resolved = (value: unknown): unknown => {
    const ref = toJson(value)['$ref'];
    return typeof ref === 'string' ? at(ref) : value;
  };

  return {
    queryParameters({ path, method }) {
      const parameters = toJson(toJson(toJson(toJson(document)['paths'])[path])[method])['parameters'];
      return (Array.isArray(parameters) ? parameters : []).map(resolved).filter(inQuery).map((each) => String(toJson(each)['name']));
    },
    requestBody(operation, body) {
      const pointer = `${operationPointer(operation)}/requestBody/content/application~1json/schema`;
      const stray = Object.keys(toJson(body)).filter((name) => !(name in toJson(toJson(at(pointer))['properties'])));
      const problem = stray.length > 0 ? `there is no ${stray.join(', ')}` : problemWith(pointer, body);
      if (problem !== null) throw new Error(`the body for ${operation.path} is wrong: ${problem}`);
      return toJson(body);
    },
    complete: (operation, fields) => check(operation, overlay(sampleOf(at(answerPointer(operation)), at), fields)),
    completeItems(operation, fields, items) {
      const { properties } = toJson(resolved(at(answerPointer(operation))));
      const sample = sampleOf(toJson(toJson(properties)['items'])['items'], at);
      return check(operation, { ...fields, items: items.map((item) => overlay(sample, item)) });
    },
    completeList(operation, elements) {
      const sample = sampleOf(toJson(resolved(at(answerPointer(operation))))['items'], at);
      return check(operation, elements.map((element) => overlay(sample, element)));
    },
  };
}

function operationPointer({ path, method }: Operation): string {
  return `#/paths/${path.replaceAll('~', '~0').replaceAll('/', '~1')}/${method}`;
}

/** The value at a JSON pointer (`#/paths/~1repos`); undefined if there is none. */
export function lookUp(document: unknown, pointer: string): unknown {
  const segments = pointer.replace(/^#\//u, '').split('/').map((segment) => segment.replaceAll('~1', '/').replaceAll('~0', '~'));
  return segments.reduce((value: unknown, segment) => toJson(value)[segment], document);
}

/** OpenAPI 3.0 allows `nullable` without `type`. Ajv does not. */
function withNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withNulls);
  if (typeof value !== 'object' || value === null) return value;
  const copy = Object.fromEntries(Object.entries(value).map(([name, each]) => [name, withNulls(each)] as const));
  if (copy['nullable'] !== true || 'type' in copy) return copy;
  const { nullable: _nullable, ...rest } = copy;
  return { anyOf: [rest, { enum: [null] }] };
}

export function isRecord(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function toJson(value: unknown): Json {
  return typeof value === 'object' && value !== null ? (value as Json) : {};
}
