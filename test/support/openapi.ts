import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import ajvFormats from 'ajv-formats';

/** The parts of the published document that the tests read. */
export interface OpenApiDocument {
  readonly servers: readonly { readonly url: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly operationId: string; readonly security?: unknown }>>>>;
  readonly components: { readonly securitySchemes: unknown };
  readonly security?: unknown;
}

/** The parts of a response that the document describes. */
export interface Answered {
  readonly status: number;
  readonly headers: Headers;
  /** Parsed if it is JSON, otherwise text. `''` if there is no body. */
  readonly body: unknown;
}

export interface OpenApiChecker {
  /**
   * Throws unless the document describes this response: its operation, status, headers, media type, and every field of its body.
   * Undocumented fields are errors too.
   */
  check(method: string, path: string, answer: Answered): void;
  /** `method path status` of each documented response that was checked. */
  readonly seen: ReadonlySet<string>;
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

interface Operation {
  readonly responses: Readonly<Record<string, { readonly headers?: Record<string, unknown>; readonly content?: Record<string, unknown> }>>;
}

/** The codes of failures that belong to no operation. */
const nobodys = new Set(['not_found', 'method_not_allowed', 'unauthorized', 'shutting_down', 'rate_limited']);

/** Returns a checker of responses against a published OpenAPI 3.1 document. */
export function createOpenApiChecker(published: unknown): OpenApiChecker {
  const document = closed(structuredClone(published)) as Document;
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  ajvFormats.default(ajv);
  ajv.addSchema(document, 'openapi');
  const compiled = new Map<string, ValidateFunction>();
  const seen = new Set<string>();

  function validate(pointer: string, value: unknown, where: string): void {
    let validator = compiled.get(pointer);
    if (validator === undefined) compiled.set(pointer, (validator = ajv.compile({ $ref: `openapi#${pointer}` })));
    if (!validator(value)) throw new Error(`${where} is not as documented: ${ajv.errorsText(validator.errors)}\n${JSON.stringify(value)}`);
  }

  return {
    seen,
    check(method, path, { status, headers, body }) {
      const where = `${method} ${path} -> ${status}`;
      const media = (headers.get('content-type') ?? '').split(';')[0] ?? '';
      const template = templateOf(document, path);
      const operation = template === null ? undefined : document.paths[template]?.[method === 'HEAD' ? 'get' : method.toLowerCase()];
      const response = operation?.responses[String(status)];
      if (template === null || operation === undefined || response === undefined) {
        const code = codeOf(body);
        if (code === null || !nobodys.has(code)) throw new Error(`${where} is not documented: ${JSON.stringify(body)}`);
        validate('/components/schemas/Problem', body, where);
        return;
      }
      seen.add(`${method} ${template} ${status}`);
      for (const name of Object.keys(response.headers ?? {})) {
        if (!headers.has(name)) throw new Error(`${where} lacks the header ${name}`);
      }
      if (response.content === undefined) {
        if (body !== '') throw new Error(`${where} has a body, and none is documented`);
        return;
      }
      if (method === 'HEAD') return;
      const key = Object.keys(response.content).find((name) => name.split(';')[0] === media);
      if (key === undefined) throw new Error(`${where} is ${media}, and only ${Object.keys(response.content).join()} is documented`);
      validate(`/paths/${escaped(template)}/${method.toLowerCase()}/responses/${status}/content/${escaped(key)}/schema`, body, where);
    },
  };
}

function templateOf({ paths }: Document, target: string): string | null {
  const path = target.split('?')[0] ?? '';
  if (path in paths) return path;
  const matches = (template: string): boolean => {
    const source = template.replace('{repository_name}', '.*').replaceAll(/\{\w+\}/g, '[^/]+');
    return new RegExp(`^${source}$`, 's').test(path);
  };
  return Object.keys(paths).find(matches) ?? null;
}

/** Forbids undocumented fields, which the document allows for later versions. Objects with only a `code` (reasons) may have more data. */
function closed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(closed);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([name, member]) => [name, closed(member)] as const);
  const properties = 'properties' in value && typeof value.properties === 'object' ? (value.properties ?? {}) : null;
  const isClosable = properties !== null && !('openapi' in properties) && Object.keys(properties).join() !== 'code';
  return Object.fromEntries(isClosable ? [...entries, ['additionalProperties', false] as const] : entries);
}

function codeOf(body: unknown): string | null {
  return typeof body === 'object' && body !== null && 'code' in body ? String(body.code) : null;
}

function escaped(segment: string): string {
  return encodeURIComponent(segment.replaceAll('~', '~0').replaceAll('/', '~1'));
}
