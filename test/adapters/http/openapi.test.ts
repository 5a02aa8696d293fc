import { readFileSync } from 'node:fs';
import { createConfig, lintFromString } from '@redocly/openapi-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { object } from '../../support/client.ts';
import { createWorld, startWorld, type World } from './world.ts';

interface Operation {
  readonly operationId: string;
  readonly security: unknown;
  readonly parameters?: readonly { readonly name: string; readonly in: string; readonly required?: boolean; readonly schema: unknown }[];
  readonly requestBody?: { readonly required?: boolean };
  readonly responses: Readonly<Record<string, unknown>>;
}

interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly format?: string;
  readonly default?: unknown;
  readonly enum?: readonly unknown[];
  readonly pattern?: string;
  readonly maximum?: number;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly discriminator?: unknown;
}

interface Document {
  readonly openapi: string;
  readonly info: unknown;
  readonly servers: unknown;
  readonly security?: unknown;
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, { readonly required?: readonly string[] }>>; readonly securitySchemes: unknown };
}

const manifest = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8')) as { version: string };

let world: World;
let document: Document;
beforeAll(async () => {
  world = await createWorld({ server: { publicUrl: 'https://skep.example.org/', product: 'hive' } });
  document = object(await world.client(null)('GET', '/openapi.json')) as unknown as Document;
});
afterAll(() => world.close());

const operations = () =>
  Object.entries(document.paths).flatMap(([path, methods]) => Object.entries(methods).map(([method, operation]) => ({ path, method, operation })));

const responses = (path: string, method: string) => document.paths[path]?.[method]?.responses ?? {};

/** The only success of a WebSocket is 101. */
const isWebSocket = ({ ruleId, at = '' }: { readonly ruleId: string; readonly at: string | undefined }) =>
  ruleId === 'operation-2xx-response' && at.includes('~1attach/');

describe('the OpenAPI document', () => {
  test('follows the recommended rules of Redocly', async () => {
    const config = await createConfig({ extends: ['recommended'] });
    const problems = await lintFromString({ source: JSON.stringify(document), config, absoluteRef: 'openapi.json' });
    const shown = problems.map(({ ruleId, message, location }) => ({ ruleId, message, at: location[0]?.pointer }));
    // These need no key and no parameters, so there is no 4xx to document.
    const open = new Set(['~1health', '~1ready', '~1openapi.json', '~1docs'].map((path) => `#/paths/${path}/get/responses`));
    expect(shown.filter((one) => !(one.ruleId === 'operation-4xx-response' && open.has(one.at ?? '')) && !isWebSocket(one))).toEqual([]);
  });

  test('has only the forms of types that the generators of clients know', () => {
    const schemas: Schema[] = [];
    JSON.stringify(document, (_, value: unknown) => {
      if (typeof value === 'object' && value !== null) schemas.push(value);
      return value;
    });
    const nullable = ({ anyOf = [] }: Schema) => anyOf.some(({ type }) => type === 'null');
    expect(schemas.filter((schema) => nullable(schema) && !schema.anyOf?.some(({ $ref }) => $ref !== undefined))).toEqual([]);
    expect(schemas.filter(({ type }) => Array.isArray(type) && (type.length !== 2 || type[1] !== 'null'))).toEqual([]);
    expect(schemas.filter((schema) => schema.enum?.includes(null))).toEqual([]);
    expect(schemas.filter((schema) => schema.default === null)).toEqual([]);
    const unions = schemas.filter(({ oneOf }) => oneOf !== undefined);
    expect(unions.filter(({ oneOf = [], discriminator }) => discriminator === undefined || oneOf.some(({ $ref }) => $ref === undefined))).toEqual([]);
    expect(JSON.stringify(document)).not.toMatch(/"(?:default|additionalProperties)":\{\}/);
    expect(schemas.filter((schema) => 'exclusiveMinimum' in schema || schema.pattern?.includes('\\/'))).toEqual([]);
    const large = ({ type, maximum = Infinity }: Schema) => [type].flat().includes('integer') && maximum >= 2 ** 31;
    expect(new Set(schemas.filter(large).map(({ format }) => format))).toEqual(new Set(['int64']));
    // In Go, a type `NewKey` has the name of the function that makes a `Key`.
    const names = Object.keys(document.components.schemas);
    expect(names.filter((name) => names.includes(name.replace(/^New/, '')) && name.startsWith('New'))).toEqual([]);
  });

  test('has the title, the version, the servers and the security scheme', () => {
    expect(document.openapi).toBe('3.1.0');
    expect(document.info).toMatchObject({ title: 'hive', version: '0.53.0', 'x-skep-version': manifest.version });
    expect(document.servers).toEqual([
      { url: 'https://skep.example.org', description: expect.any(String) },
      { url: 'http://127.0.0.1:3000', description: expect.any(String) },
    ]);
    expect(document.components.securitySchemes).toEqual({
      APIKeyHeader: { type: 'apiKey', in: 'header', name: 'X-Session-API-Key', description: expect.any(String) },
    });
    expect(document.security).toBeUndefined();
  });

  test('has every route with its success status', () => {
    const operation = 'get_repository_microagents_api_user_repository__repository_name__microagents_get';
    expect(document.paths['/api/user/repository/{repository_name}/microagents']?.['get']?.operationId).toBe(operation);
    expect(operations().map(({ path, method, operation }) => `${method} ${path} ${Object.keys(operation.responses)[0]}`)).toEqual([
      'get /api/user/repository/{repository_name}/microagents 200',
      'get /api/user/repository/{repository_name}/microagents/content 200',
      'get /api/v1/repositories/search 200',
      'get /api/v1/repositories/{repository_name}/branches 200',
      'post /api/v1/app-conversations 201',
      'get /api/v1/app-conversations 200',
      'get /api/v1/app-conversations/{id} 200',
      'patch /api/v1/app-conversations/{id} 200',
      'delete /api/v1/app-conversations/{id} 204',
      'get /api/v1/app-conversations/{id}/transcript 200',
      'post /api/v1/app-conversations/{id}/messages 202',
      'post /api/v1/app-conversations/{id}/cancel 202',
      'post /api/v1/app-conversations/{id}/permissions/{permission_id} 200', 'get /api/v1/app-conversations/{id}/changes 200', 'post /api/v1/app-conversations/{id}/publish 200',
      'get /api/v1/app-conversations/{id}/events 200',
      'get /api/v1/app-conversations/{id}/events/stream 200',
      'get /api/v1/events 200',
      'get /api/v1/events/ticket 200',
      'get /api/v1/events/stream 200',
      'get /api/v1/sandboxes/search 200',
      'get /api/v1/sandboxes 200',
      'post /api/v1/sandboxes 201',
      'get /api/v1/sandboxes/{id} 200',
      'delete /api/v1/sandboxes/{id} 204',
      'post /api/v1/sandboxes/{id}/pause 200',
      'post /api/v1/sandboxes/{id}/resume 200',
      'post /api/v1/sandboxes/{id}/adopt 200',
      'get /api/v1/sandboxes/{id}/logs 200',
      'get /api/v1/sandboxes/{id}/usage 200',
      'post /api/v1/sandboxes/{id}/ports/{port}/links 201',
      'post /api/v1/sandboxes/{id}/executions 201',
      'get /api/v1/sandboxes/{id}/executions 200',
      'get /api/v1/sandboxes/{id}/executions/{execution_id} 200',
      'delete /api/v1/sandboxes/{id}/executions/{execution_id} 204',
      'get /api/v1/sandboxes/{id}/executions/{execution_id}/output 200',
      'post /api/v1/sandboxes/{id}/executions/{execution_id}/input 204',
      'post /api/v1/sandboxes/{id}/executions/{execution_id}/signal 204',
      'post /api/v1/sandboxes/{id}/executions/{execution_id}/resize 204',
      'get /api/v1/sandboxes/{id}/executions/{execution_id}/attach 101',
      'get /api/v1/sandboxes/{id}/files 200',
      'put /api/v1/sandboxes/{id}/files 200',
      'delete /api/v1/sandboxes/{id}/files 204',
      'get /api/v1/sandboxes/{id}/directories 200',
      'post /api/v1/sandboxes/{id}/directories 200',
      'get /api/v1/sandboxes/{id}/archive 200',
      'put /api/v1/sandboxes/{id}/archive 204',
      'get /api/v1/sandbox-specs/search 200',
      'get /api/v1/sandbox-specs 200',
      'get /api/v1/overview 200', 'get /api/v1/settings 200', 'get /metrics 200',
      'get /api/v1/keys 200', 'post /api/v1/keys 201', 'delete /api/v1/keys/{key} 204', 'post /api/v1/login 200',
      'get /health 200',
      'get /ready 200',
      'get /api/v1/me 200',
      'get /openapi.json 200',
      'get /docs 200',
    ]);
  });

  test('requires the key for each operation that needs it, and documents its 401', () => {
    for (const { path, operation } of operations()) {
      const needsKey = (path.startsWith('/api/') && path !== '/api/v1/login') || path === '/metrics';
      expect(operation.security).toEqual(needsKey ? [{ APIKeyHeader: [] }] : []);
      expect('401' in operation.responses).toBe(needsKey);
    }
  });

  test('documents `forbidden` for an operation that some keys may not use, and not for the login', () => {
    expect(JSON.stringify(responses('/api/v1/settings', 'get')['403'])).toContain('`forbidden`');
    expect(JSON.stringify(responses('/api/v1/login', 'post')['403'])).not.toContain('`forbidden`');
  });

  test('describes a response once if it has several media types', () => {
    const media = ['transcript', 'changes'].map((name) => responses(`/api/v1/app-conversations/{id}/${name}`, 'get')['200']);
    expect(media).toEqual([
      { description: 'The transcript.', content: { 'text/markdown; charset=utf-8': expect.anything(), 'application/json': expect.anything() } },
      {
        description: 'The changes.',
        content: { 'application/json': expect.anything(), 'text/x-diff; charset=utf-8': expect.anything(), 'application/x-tar': expect.anything() },
      },
    ]);
  });

  test('marks the operations that require a body', () => {
    const needed = operations().filter(({ operation }) => operation.requestBody?.required === true).map(({ operation }) => operation.operationId);
    expect(needed).toEqual([
      'send_app_conversation_message', 'answer_app_conversation_permission', 'run_execution', 'signal_execution', 'resize_execution', 'create_key', 'log_in',
    ]);
  });

  test('has the schemas of the resources with all their fields', () => {
    const { schemas } = document.components;
    expect(Object.keys(schemas)).toEqual(
      expect.arrayContaining([
        'MicroagentResponse', 'MicroagentContentResponse', 'Sandbox', 'SandboxSpec', 'AppConversation', 'AppConversationStartRequest', 'HTTPValidationError', 'ValidationError',
        'Problem', 'SandboxPage', 'SandboxSpecPage', 'AppConversationPage', 'Message', 'MessageAccepted', 'PermissionAnswer', 'Event', 'EventPage',
      ]),
    );
    expect(schemas['Sandbox']?.required).toEqual([
      'id', 'created_by_user_id', 'sandbox_spec_id', 'status', 'status_detail', 'status_reason', 'pause_kind', 'paused_by', 'paused_reason',
      'session_api_key', 'exposed_urls', 'metadata', 'created_at', 'updated_at', 'last_active_at', 'expires_at',
    ]);
    expect(schemas['SandboxSpec']?.required).toEqual([
      'id', 'description', 'image', 'command', 'working_dir', 'initial_env', 'allowed_secrets', 'ports', 'wake_on_access', 'rest', 'agent',
      'resources', 'created_at',
    ]);
    expect(schemas['AppConversation']?.required).toEqual([
      'id', 'created_by_user_id', 'title', 'sandbox_id', 'sandbox_status', 'sandbox_spec_id', 'selected_repository', 'selected_branch', 'git_provider',
      'start_status', 'execution_status', 'status_detail', 'status_reason', 'pull_requests', 'created_at', 'updated_at', 'archived_at',
    ]);
    expect(schemas['AppConversationStartRequest']?.required).toBeUndefined();
    expect(schemas['ToolCallEvent']?.required).toEqual(
      ['id', 'at', 'conversation_id', 'sandbox_id', 'owner_id', 'actor', 'user_id', 'reason', 'status_reason', 'kind', 'data'],
    );
    expect(schemas['Event']).toMatchObject({
      discriminator: { propertyName: 'kind', mapping: { tool_call: '#/components/schemas/ToolCallEvent' } },
    });
    const limit = document.paths['/api/v1/sandboxes/search']?.['get']?.parameters?.find(({ name }) => name === 'limit');
    expect(limit?.schema).toMatchObject({ type: 'integer', minimum: 1, maximum: 100, default: 100 });
    const query = document.paths['/api/v1/sandboxes/{id}/logs']?.['get']?.parameters?.filter((parameter) => parameter.in === 'query');
    expect(query?.map(({ schema }) => schema)).toEqual([
      expect.objectContaining({ type: 'integer', minimum: 0 }), { type: 'boolean', description: 'Continue until the sandbox stops.' },
    ]);
  });

  test.each([
    ['http://127.0.0.1:3000', ['http://127.0.0.1:3000']],
    ['http://localhost:3000', ['http://localhost:3000']],
    [undefined, ['own', 'http://127.0.0.1:3000']],
  ])('with the public URL %s, lists each server once', async (publicUrl, servers) => {
    const other = await startWorld({ server: publicUrl === undefined ? {} : { publicUrl } });
    const { body } = await other.client(null)('GET', '/openapi.json');
    const urls = servers.map((url) => ({ url: url === 'own' ? other.url : url }));
    expect(body).toMatchObject({ servers: urls });
  });
});

test('the OpenAPI document has a relative server URL if the server listens on all addresses', async () => {
  const other = await startWorld({ server: { host: '0.0.0.0' } });
  expect((await other.client(null)('GET', '/openapi.json')).body).toMatchObject({ servers: [{ url: '/' }, {}] });
});
