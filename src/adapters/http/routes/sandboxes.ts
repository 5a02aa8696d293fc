import { z } from 'zod';
import { expiresAt } from '../../../domain/idle-policy.ts';
import { pauseOf, type Sandbox } from '../../../domain/sandbox.ts';
import { pauseKindSchema, sandboxStatusSchema } from '../../shared/event-data-schemas.ts';
import {
  claimOf, eventActor, idempotencyHeaders, locationHeader, specId, statusFields, statusFieldsOf, statusReason, text, timestamp,
} from '../common-schemas.ts';
import { alias, operation } from '../operation.ts';
import { pageQuery, pageSchema, readPage } from '../page-token.ts';
import { portUrl } from '../port-links.ts';
import { presenter } from '../presenter.ts';
import type { RequestContext } from '../request-context.ts';
import { claimedParameters, metadataQuery, sandboxStartFields, splitStartBody } from '../sandbox-parameters.ts';
import { requestedSpec } from './sandbox-specs.ts';

const exposedUrl = z
  .object({
    name: z.string(),
    url: z.string().meta({ format: 'uri', example: 'http://127.0.0.1:41873' }),
    port: z.int().describe('The port in the sandbox.'),
  })
  .meta({ id: 'ExposedUrl' });

const sandboxResource = z
  .object({
    id: z.string(),
    created_by_user_id: z.string(),
    sandbox_spec_id: z.string(),
    status: sandboxStatusSchema,
    ...statusFields,
    pause_kind: pauseKindSchema.nullable().describe('How the sandbox is paused, or will be.'),
    paused_by: eventActor.nullable()
      .describe('Who paused it; `runtime` is something outside of Skep. Null when it runs again.'),
    paused_reason: statusReason.nullable(),
    session_api_key: z.string().nullable()
      .describe("The sandbox's own key, for requests to its ports. Null unless it is RUNNING, and null if your key can only read."),
    exposed_urls: z.array(exposedUrl).nullable().describe('The URLs of its ports. Null unless it is RUNNING.'),
    metadata: z.record(z.string(), z.string()).describe('The metadata of the start request.'),
    created_at: timestamp,
    updated_at: timestamp,
    last_active_at: timestamp,
    expires_at: timestamp.nullable().describe('When it is deleted, even if it is in use. Null: never.'),
  })
  .meta({ id: 'Sandbox', description: 'An execution environment that can be started, paused and resumed.' });

/** Presents a sandbox. A read-only key does not get the sandbox's own key, because that key allows more. */
const presentSandbox = presenter(sandboxResource, (sandbox: Sandbox, { principal: { access }, http }: RequestContext) => {
  const { proxy } = http.options;
  const isRunning = sandbox.status === 'RUNNING';
  const pause = pauseOf(sandbox);
  // If there is a proxy, its addresses are used: those of the runtime work only on the server's machine.
  const urls = proxy === undefined ? sandbox.exposedUrls
    : sandbox.exposedUrls.map((exposed) => ({ ...exposed, url: portUrl(proxy, sandbox.id, exposed.port) }));
  return {
    ...sandbox,
    createdByUserId: sandbox.ownerId,
    sandboxSpecId: sandbox.spec.id,
    ...statusFieldsOf(sandbox.statusReason),
    pausedBy: pause?.actor ?? null,
    pausedReason: pause === null ? null : statusFieldsOf(pause.reason).statusReason,
    sessionApiKey: isRunning && access !== 'read' ? sandbox.sessionApiKey : null,
    exposedUrls: isRunning ? urls : null,
    expiresAt: expiresAt(sandbox),
  };
});

const sandboxSearchQuery = z.object({
  ...pageQuery,
  status__eq: sandboxStatusSchema.optional().describe('Only sandboxes with this status.'),
  sandbox_spec_id__eq: specId.optional().describe('Only sandboxes of this spec.'),
  metadata__eq: metadataQuery.optional()
    .describe('Only sandboxes with this `key=value` in their metadata, for example `?metadata__eq=task%3D42`. Repeat it for each pair.'),
});

const sandboxStartBody = z
  .strictObject(sandboxStartFields)
  .meta({
    id: 'SandboxStartRequest',
    example: { sandbox_spec_id: 'workspace', env: { CI: '1' }, metadata: { task: '42' }, timeout_seconds: 3600 },
  });

const sandboxStartQuery = z.object({
  sandbox_spec_id: specId.optional().describe('The spec. Use either this parameter or the field in the body.'),
});

const sandboxAdoptBody = z.strictObject({
  user_id: text(100).min(1).nullable().default(null).describe('The new owner. Default: the owner that the runtime knows.'),
  sandbox_spec_id: specId.nullable().default(null).describe('The spec. Default: the spec that the runtime knows.'),
}).meta({ id: 'SandboxAdoptRequest' });

const sandboxPauseBody = z.strictObject({ pause_kind: pauseKindSchema.optional() }).meta({ id: 'SandboxPauseRequest' });

const sandboxes = '/api/v1/sandboxes';
const theSandbox = { status: 200, description: 'The sandbox.', schema: sandboxResource };
const action = { tag: 'Sandboxes', success: theSandbox } as const;

const search = operation('get', `${sandboxes}/search`, {
  tag: 'Sandboxes',
  operationId: 'search_sandboxes',
  summary: 'List sandboxes',
  description: 'Newest first.',
  query: sandboxSearchQuery,
  success: { status: 200, description: 'A page of sandboxes.', schema: pageSchema(sandboxResource, 'SandboxPage') },
  failures: [],
  handle: async (context, { query }) => {
    const { skep, principal } = context;
    const filter = { status: query.status__eq, specId: query.sandbox_spec_id__eq, metadata: query.metadata__eq };
    return await readPage(context, 'sandboxes', query, (page) => skep.sandboxes.search(principal, filter, page), (sandbox) =>
      presentSandbox(sandbox, context));
  },
});

export const sandboxOperations = [
  search,
  alias(search, sandboxes, 'list_sandboxes'),
  operation('post', sandboxes, {
    tag: 'Sandboxes',
    operationId: 'start_sandbox',
    summary: 'Start a sandbox',
    description: 'Returns a STARTING sandbox. Get it again until it is RUNNING. If the runtime does not answer in time, it becomes ERROR.',
    query: sandboxStartQuery,
    headers: idempotencyHeaders,
    body: sandboxStartBody,
    success: { ...theSandbox, status: 201, headers: locationHeader },
    failures: ['sandbox_limit_reached', 'idempotency_conflict', 'sandbox_not_found'],
    handle: async (context, { query, headers, body }) => {
      const { skep, principal } = context;
      const specId = requestedSpec(skep, query.sandbox_spec_id ?? null, body.sandbox_spec_id);
      const { parameters } = splitStartBody(body);
      const claim = claimOf(headers, principal.userId, 'start_sandbox', { specId, ...claimedParameters(parameters) });
      const sandbox = await skep.sandboxes.start(principal.userId, { specId, parameters, ...claim });
      context.response.location(context.link(`${sandboxes}/${sandbox.id}`));
      return presentSandbox(sandbox, context);
    },
  }),
  operation('get', `${sandboxes}/{id}`, {
    tag: 'Sandboxes',
    operationId: 'get_sandbox',
    summary: 'Get a sandbox',
    success: theSandbox,
    failures: ['sandbox_not_found'],
    handle: async (context, { params }) =>
      presentSandbox(await context.skep.sandboxes.get(context.principal, params.id), context),
  }),
  operation('delete', `${sandboxes}/{id}`, {
    tag: 'Sandboxes',
    operationId: 'delete_sandbox',
    summary: 'Delete a sandbox',
    description:
      'After the response, no request finds the sandbox any more. Its processes and files are gone too, unless the runtime needs more ' +
      'than 20 seconds or does not answer: then they are removed later. Deleting it again within a day succeeds.',
    success: { status: 204, description: 'It is deleted.' },
    failures: ['sandbox_not_found'],
    handle: async ({ skep, principal }, { params }) => await skep.sandboxes.delete(principal, params.id),
  }),
  operation('post', `${sandboxes}/{id}/pause`, {
    ...action,
    operationId: 'pause_sandbox',
    summary: 'Pause a sandbox',
    description: 'Pausing a paused sandbox changes nothing, except that `stop` stops a frozen one. See `pause_kind` of the response.',
    body: sandboxPauseBody,
    failures: ['sandbox_not_found', 'sandbox_not_running', 'sandbox_busy', 'freeze_unsupported', 'runtime_unavailable', 'runtime_timeout'],
    handle: async (context, { params, body }) =>
      presentSandbox(await context.skep.sandboxes.pause(context.principal, params.id, body.pause_kind), context),
  }),
  operation('post', `${sandboxes}/{id}/resume`, {
    ...action,
    operationId: 'resume_sandbox',
    summary: 'Resume a sandbox',
    description: 'Resuming a running sandbox only counts as activity.',
    failures: [
      'sandbox_not_found', 'sandbox_not_paused', 'sandbox_not_running', 'sandbox_busy', 'sandbox_in_quarantine', 'sandbox_limit_reached',
      'runtime_unavailable', 'runtime_timeout',
    ],
    handle: async (context, { params }) =>
      presentSandbox(await context.skep.sandboxes.resume(context.principal, params.id), context),
  }),
  operation('post', `${sandboxes}/{id}/adopt`, {
    ...action,
    operationId: 'adopt_sandbox',
    adminOnly: true,
    summary: 'Give a sandbox in quarantine to an owner',
    description:
      "Needs an administrator's key. With such a key, the list of sandboxes shows those in quarantine, with the owner `skep:quarantine`. " +
      'The sandbox stays stopped until it is resumed.',
    body: sandboxAdoptBody,
    failures: ['sandbox_not_found', 'sandbox_busy', 'runtime_unavailable', 'runtime_timeout'],
    handle: async (context, { params, body: { user_id: ownerId, sandbox_spec_id: specId } }) =>
      presentSandbox(await context.skep.sandboxes.adopt(context.principal, params.id, { ownerId, specId }), context),
  }),
];
