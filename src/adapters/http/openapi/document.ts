import { createDocument, type ZodOpenApiOperationObject, type ZodOpenApiResponseObject } from 'zod-openapi';
import { noBody, noFields, tags, type Operation, type ResponseForm } from '../operation.ts';
import { failureResponses, failuresOf } from './failures.ts';

export type OpenApiDocument = ReturnType<typeof createDocument>;

/** The version of the legacy interface, which this one serves. */
const interfaceVersion = '0.53.0';

const localServer = 'http://127.0.0.1:3000';

export interface DocumentOptions {
  readonly product: string;
  /** Without it, the server is named relatively. */
  readonly publicUrl: string | null;
  /** Where the router is mounted; empty at the root. */
  readonly mount: string;
}

/** The OpenAPI document of the operations. */
export function openApiDocument(operations: readonly Operation[], { product, publicUrl, mount }: DocumentOptions): OpenApiDocument {
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
