import { createDocument, type ZodOpenApiOperationObject, type ZodOpenApiResponseObject } from 'zod-openapi';
import { Failure } from '../../domain/failure.ts';
import { retryAfterHeader } from './common-schemas.ts';
import { noBody, noFields, tags, type Operation, type ResponseForm } from './operation.ts';
import type { RouterSettings } from './options.ts';
import { HttpProblem, httpValidationErrorSchema, problemAnswer, problemOf, problemSchema, statusOf, type ProblemCode } from './problems.ts';

export type OpenApiDocument = ReturnType<typeof createDocument> & Record<string, unknown>;

/** The version of the legacy interface, which this one serves. */
const interfaceVersion = '0.53.0';

const localServer = 'http://127.0.0.1:3000';

/** Mounts are few; more different ones than this are a parameter in the mount path, and not worth keeping. */
const maxKept = 16;

/** Returns a function that makes the OpenAPI document of the operations for a mount path (empty at the root), and keeps it. */
export function openApiDocuments(operations: readonly Operation[], settings: RouterSettings): (mount: string) => OpenApiDocument {
  const kept = new Map<string, OpenApiDocument>();
  return (mount) => {
    const known = kept.get(mount);
    if (known !== undefined) return known;
    const document = { ...openApiDocument(operations, settings, mount) };
    if (kept.size < maxKept) kept.set(mount, document);
    return document;
  };
}

function openApiDocument(operations: readonly Operation[], { product, publicUrl }: RouterSettings, mount: string) {
  const paths: Record<string, Record<string, ZodOpenApiOperationObject>> = {};
  for (const operation of operations) (paths[operation.path] ??= {})[operation.method] = operationObject(operation);
  return createDocument(
    {
      openapi: '3.1.0',
      info: {
        title: product,
        version: interfaceVersion,
        description:
          'A control plane for software-engineering agents: conversations, the sandboxes that power them, and the ' +
          'microagents of git repositories. Send an `X-Request-Id` to find a request again in the log.',
        license: { name: 'MIT', identifier: 'MIT' },
      },
      servers: serversOf(publicUrl, mount),
      tags: tags.map((name) => ({ name, description: tagDescriptions[name] })),
      paths,
      components: {
        securitySchemes: {
          APIKeyHeader: { type: 'apiKey', in: 'header', name: 'X-Session-API-Key', description: 'An API key of the deployment.' },
        },
      },
    },
    {
      override: ({ jsonSchema, io }) => {
        // The format says it shorter than zod's regular expression.
        if (jsonSchema.format === 'date-time') delete jsonSchema.pattern;
        // So does the type.
        if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
        if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
        // A later version may answer with more fields.
        if (io === 'output' && jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties;
      },
    },
  );
}

const tagDescriptions: Record<(typeof tags)[number], string> = {
  Microagents: 'What repositories tell agents.',
  Conversations: 'Conversations with agents; each is powered by a sandbox.',
  Events: 'What was said and done, in order.',
  Sandboxes: 'Execution environments that are started, paused and resumed.',
  'Sandbox specs': 'Templates from which sandboxes are started.',
  Service: 'About the server; open without a key.',
};

function serversOf(publicUrl: string | null, mount: string) {
  const own = publicUrl === null ? mount || '/' : `${publicUrl}${mount}`;
  const local = `${localServer}${mount}`;
  const servers = [{ url: own, description: 'This deployment.' }];
  const isLocal = own === local || own === local.replace('127.0.0.1', 'localhost');
  return isLocal ? servers : [...servers, { url: local, description: 'A local one.' }];
}

function operationObject(operation: Operation): ZodOpenApiOperationObject {
  const { params, query, headers, body, success, otherwise } = operation;
  const responses = failureResponses(failuresOf(operation));
  for (const form of otherwise === undefined ? [success] : [success, otherwise]) {
    responses[`${form.status}`] = merged(responseObject(form), responses[`${form.status}`]);
  }
  return {
    operationId: operation.operationId,
    tags: [operation.tag],
    summary: operation.summary,
    ...(operation.description !== undefined && { description: operation.description }),
    security: operation.needsKey ? [{ APIKeyHeader: [] }] : [],
    requestParams: {
      ...(params !== noFields && { path: params }),
      ...(query !== noFields && { query }),
      ...(headers !== noFields && { header: headers }),
    },
    ...(body !== noBody && { requestBody: { required: !body.safeParse({}).success, content: { 'application/json': { schema: body } } } }),
    responses,
  };
}

function responseObject({ description, schema, media = 'application/json', headers }: ResponseForm): ZodOpenApiResponseObject {
  return {
    description,
    ...(headers !== undefined && { headers }),
    ...(schema !== noBody && { content: { [media]: { schema } } }),
  };
}

/** A status may stand for an answer and for failures; their media types tell them apart. */
function merged(form: ZodOpenApiResponseObject, failures: ZodOpenApiResponseObject | undefined): ZodOpenApiResponseObject {
  if (failures === undefined) return form;
  return {
    ...form,
    description: `${form.description} Or ${failures.description}`,
    content: { ...form.content, ...failures.content },
  };
}

/** Every failure that the operation may answer, those of all operations of its kind included. */
function failuresOf(operation: Operation): readonly ProblemCode[] {
  const { params, query, headers, body, needsKey, changes, failures } = operation;
  const takesInput = params !== noFields || query !== noFields || headers !== noFields || body !== noBody;
  const codes: ProblemCode[] = [
    ...(needsKey ? (['unauthorized', 'rate_limited', 'store_unavailable'] as const) : []),
    ...(changes === undefined ? [] : (['forbidden'] as const)),
    ...(body === noBody ? [] : (['payload_too_large'] as const)),
    ...(takesInput ? (['invalid_request'] as const) : []),
    ...failures,
    'internal',
    'shutting_down',
  ];
  return [...new Set(codes)].toSorted((a, b) => statusOf(a) - statusOf(b));
}

/** The failures as responses, those of one status together. */
function failureResponses(codes: readonly ProblemCode[]): Record<string, ZodOpenApiResponseObject> {
  const responses: Record<string, ZodOpenApiResponseObject> = {};
  for (const [status, ofStatus] of Map.groupBy(codes, statusOf)) {
    responses[`${status}`] = status === statusOf('invalid_request') ? validationResponse() : problemResponse(status, ofStatus);
  }
  return responses;
}

const validationResponse = () => ({
  description: 'Something in the request is not of the form.',
  content: { 'application/json': { schema: httpValidationErrorSchema, example: sampleBody('invalid_request') } },
});

function problemResponse(status: number, codes: readonly ProblemCode[]) {
  const examples = Object.fromEntries(codes.map((code) => [code, { value: sampleBody(code) }]));
  return {
    description: `${codes.map((code) => `\`${code}\``).join(', ')}.`,
    content: { 'application/problem+json': { schema: problemSchema, examples } },
    ...((status === 429 || status === 503) && { headers: retryAfterHeader }),
  };
}

const samples: { readonly [C in ProblemCode]: Failure | HttpProblem } = {
  unauthorized: new Failure('unauthorized', {}),
  forbidden: new Failure('forbidden', { action: 'start sandboxes' }),
  not_found: new HttpProblem('not_found', {}),
  repository_not_found: new Failure('repository_not_found', { repository: 'acme/shop' }),
  repository_forbidden: new Failure('repository_forbidden', { provider: 'github', repository: 'acme/shop' }),
  repository_empty: new Failure('repository_empty', { repository: 'acme/shop', branch: 'main' }),
  branch_not_found: new Failure('branch_not_found', { repository: 'acme/shop', branch: 'next' }),
  sandbox_not_found: new Failure('sandbox_not_found', { id: 'sb-3f9k2m7x' }),
  conversation_not_found: new Failure('conversation_not_found', { id: 'conv-8d2n5q1c' }),
  permission_not_found: new Failure('permission_not_found', { id: 'perm-5h2j8v4s' }),
  file_not_found: new Failure('file_not_found', { path: '/workspace/notes.md' }),
  method_not_allowed: new HttpProblem('method_not_allowed', { allow: ['GET', 'HEAD'] }),
  sandbox_not_running: new Failure('sandbox_not_running', { id: 'sb-3f9k2m7x', status: 'ERROR' }),
  sandbox_not_paused: new Failure('sandbox_not_paused', { id: 'sb-3f9k2m7x', status: 'ERROR' }),
  sandbox_busy: new Failure('sandbox_busy', { id: 'sb-3f9k2m7x', status: 'STARTING' }),
  conversation_not_ready: new Failure('conversation_not_ready', { id: 'conv-8d2n5q1c', reason: 'its start failed' }),
  idempotency_conflict: new Failure('idempotency_conflict', { key: 'order-4711' }),
  payload_too_large: new HttpProblem('payload_too_large', { limitBytes: 262_144 }),
  invalid_request: new HttpProblem('invalid_request', {
    problems: [{ loc: ['query', 'limit'], msg: 'must be a whole number', type: 'invalid_type' }],
  }),
  sandbox_limit_reached: new Failure('sandbox_limit_reached', { limit: 'running_per_owner', max: 5, retryAfterSeconds: 10 }),
  rate_limited: new Failure('rate_limited', { limit: 'requests_per_minute', retryAfterSeconds: 12 }),
  internal: new Failure('internal', { incident: 'inc-7k3p9w2d' }),
  provider_unauthorized: new Failure('provider_unauthorized', { provider: 'github' }),
  provider_failed: new Failure('provider_failed', { provider: 'github', reason: 'it answered with status 500' }),
  provider_rate_limited: new Failure('provider_rate_limited', { provider: 'github', retryAfterSeconds: 1800 }),
  provider_timeout: new Failure('provider_timeout', { provider: 'github', limitMs: 10_000 }),
  runtime_unavailable: new Failure('runtime_unavailable', { runtime: 'docker', reason: 'its engine does not answer', retryAfterSeconds: 5 }),
  runtime_timeout: new Failure('runtime_timeout', { runtime: 'docker', limitMs: 30_000 }),
  store_unavailable: new Failure('store_unavailable', { reason: 'it is locked', retryAfterSeconds: 1 }),
  shutting_down: new Failure('shutting_down', { retryAfterSeconds: 5 }),
};

/** The body of the answer to a problem with this code, as an example. */
function sampleBody(code: ProblemCode): unknown {
  const problem = problemOf(samples[code]);
  return problem === null ? null : JSON.parse(problemAnswer(problem).body);
}
