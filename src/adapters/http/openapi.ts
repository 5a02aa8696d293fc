import type { z } from 'zod';
import { createDocument, type ZodOpenApiOperationObject, type ZodOpenApiResponseObject } from 'zod-openapi';
import { packageVersion } from '../shared/package-version.ts';
import { httpValidationErrorSchema, retryAfterHeader } from './common-schemas.ts';
import { byteStream, tags, type Operation, type ResponseForm } from './operation.ts';
import { problemSchema } from './problem-schema.ts';
import { exampleBody, httpStatusOf, type ProblemCode } from './problems.ts';

export type OpenApiDocument = ReturnType<typeof createDocument> & Record<string, unknown>;

type JsonSchema = z.core.JSONSchema.JSONSchema;

/** The version of the legacy API that this API is compatible with. */
const interfaceVersion = '0.53.0';

/** Returns the OpenAPI document of the operations. Its servers depend on the mount path, see {@link serversOf}. */
export function openApiDocument(operations: readonly Operation[], product = 'skep'): OpenApiDocument {
  const paths: Record<string, Record<string, ZodOpenApiOperationObject>> = {};
  for (const operation of operations) (paths[operation.path] ??= {})[operation.method] = operationObject(operation);
  const document = createDocument(
    {
      openapi: '3.1.0',
      info: {
        title: product,
        version: interfaceVersion,
        'x-skep-version': packageVersion(),
        description:
          'A control plane for software-engineering agents: conversations, the sandboxes that they run in, and the ' +
          "microagents of git repositories. Send an `X-Request-Id` to find a request again in the server's log. An unknown query " +
          'parameter is ignored, so a list with a misspelt filter returns everything.',
        license: { name: 'MIT', identifier: 'MIT' },
      },
      tags: Object.entries(tags).map(([name, description]) => ({ name, description })),
      paths,
      components: {
        securitySchemes: {
          APIKeyHeader: { type: 'apiKey', in: 'header', name: 'X-Session-API-Key', description: 'An API key of the deployment.' },
        },
      },
    },
    {
      override: ({ jsonSchema, io }) => simplify(jsonSchema, io),
    },
  );
  return { ...document };
}

/** Says the same in the forms that generators of clients know. */
function simplify(schema: JsonSchema, io: 'input' | 'output'): void {
  const { anyOf: [given, none, ...others] = [] } = schema;
  if (typeof given?.type === 'string' && none?.type === 'null' && others.length === 0) {
    delete schema.anyOf;
    Object.assign(schema, { ...given, ...schema, type: [given.type, 'null'] });
  }
  if (Array.isArray(schema.type) && !schema.type.includes('null')) {
    schema.anyOf = schema.type.map((type) => ({ type }));
    delete schema.type;
  }
  // A property with a default would be required in the types of requests.
  if (schema.default === null || isEmptyObject(schema.default)) delete schema.default;
  if (isEmptyObject(schema.additionalProperties)) schema.additionalProperties = true;
  if ([schema.type].flat().includes('integer') && !(Math.abs(schema.maximum ?? Infinity) < 2 ** 31)) schema.format = 'int64';
  // `format` says the same, and is shorter than zod's regular expression.
  if (schema.format === 'date-time') delete schema.pattern;
  if (schema.pattern !== undefined) schema.pattern = withoutEscapedSlashes(schema.pattern);
  // The type says the same.
  if (schema.minimum === Number.MIN_SAFE_INTEGER) delete schema.minimum;
  if (schema.maximum === Number.MAX_SAFE_INTEGER) delete schema.maximum;
  // A later version may add fields to responses.
  if (io === 'output' && schema.additionalProperties === false) delete schema.additionalProperties;
}

/** A regular expression of JavaScript escapes slashes. Elsewhere that is an error, or a backslash. */
function withoutEscapedSlashes(pattern: string): string {
  return pattern.replaceAll(/\\(.)/gs, (escaped, char) => (char === '/' ? '/' : escaped));
}

function isEmptyObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0;
}

/**
 * Returns the servers of a router that is mounted at the path (empty at the root). Without a public URL it has a relative one, which
 * clients resolve against the address of the document. `localUrl` is another server in the document; null if there is none.
 */
export function serversOf(publicUrl: string | undefined, mount: string, localUrl: string | null) {
  const own = publicUrl === undefined ? mount || '/' : `${publicUrl.replace(/\/+$/, '')}${mount}`;
  const servers = [{ url: own, description: 'This deployment.' }];
  const isLocal = localUrl === null || own === localUrl || own === localUrl.replace('127.0.0.1', 'localhost');
  return isLocal ? servers : [...servers, { url: localUrl, description: 'A local deployment.' }];
}

function operationObject(operation: Operation): ZodOpenApiOperationObject {
  const { params, query, headers, body, takesBytes, success, otherwise = [] } = operation;
  const responses = failureResponses(failuresOf(operation));
  for (const [status, forms] of Map.groupBy([success, ...otherwise], (form) => `${form.status}`)) {
    const failures = responses[status];
    responses[status] = [...forms.map(responseObject), ...(failures === undefined ? [] : [failures])].reduce(merged);
  }
  return {
    operationId: operation.operationId,
    tags: [operation.tag],
    summary: operation.summary,
    ...(operation.description !== undefined && { description: operation.description }),
    security: operation.isPublic ? [] : [{ APIKeyHeader: [] }],
    requestParams: {
      ...(params && { path: params }),
      ...(query && { query }),
      ...(headers && { header: headers }),
    },
    ...(body && { requestBody: { required: !body.safeParse({}).success, content: { 'application/json': { schema: body } } } }),
    ...(takesBytes === true && { requestBody: { content: { 'application/octet-stream': { schema: byteStream } } } }),
    responses,
  };
}

function responseObject({ description, schema, media = 'application/json', headers }: ResponseForm): ZodOpenApiResponseObject {
  return {
    description,
    ...(headers !== undefined && { headers }),
    ...(schema && { content: { [media]: { schema } } }),
  };
}

/** Merges two responses with the same status. They differ in their media type. */
function merged(one: ZodOpenApiResponseObject, other: ZodOpenApiResponseObject): ZodOpenApiResponseObject {
  const description = one.description === other.description ? one.description : `${one.description} Or ${other.description}`;
  return { ...one, description, content: { ...one.content, ...other.content } };
}

/** Returns every failure that the operation can return, including the failures common to its kind. */
function failuresOf(operation: Operation): readonly ProblemCode[] {
  const { method, params, query, headers, body, isPublic, adminOnly, failures } = operation;
  const codes: ProblemCode[] = [
    ...(isPublic ? [] : (['unauthorized', 'rate_limited', 'store_unavailable'] as const)),
    ...(isPublic || (method === 'get' && adminOnly !== true) ? [] : (['forbidden'] as const)),
    ...(body ? (['payload_too_large'] as const) : []),
    ...(params ?? query ?? headers ?? body ? (['invalid_request'] as const) : []),
    ...failures,
    'internal',
    'shutting_down',
  ];
  return [...new Set(codes)].toSorted((a, b) => httpStatusOf(a) - httpStatusOf(b));
}

function failureResponses(codes: readonly ProblemCode[]): Record<string, ZodOpenApiResponseObject> {
  const responses: Record<string, ZodOpenApiResponseObject> = {};
  for (const [status, ofStatus] of Map.groupBy(codes, httpStatusOf)) {
    responses[`${status}`] = status === httpStatusOf('invalid_request') ? validationResponse() : problemResponse(status, ofStatus);
  }
  return responses;
}

const validationResponse = () => ({
  description: 'The request is not valid.',
  content: { 'application/json': { schema: httpValidationErrorSchema, example: exampleBody('invalid_request') } },
});

function problemResponse(status: number, codes: readonly ProblemCode[]) {
  const examples = Object.fromEntries(codes.map((code) => [code, { value: exampleBody(code) }]));
  return {
    description: `${codes.map((code) => `\`${code}\``).join(', ')}.`,
    content: { 'application/problem+json': { schema: problemSchema, examples } },
    ...((status === 429 || status === 503) && { headers: retryAfterHeader }),
  };
}
