import { z } from 'zod';
import type { Skep } from '../../../application/skep.ts';
import type { KeyAccess } from '../../../domain/principal.ts';
import { pauseKinds, type Sandbox, sandboxStatuses } from '../../../domain/sandbox.ts';
import { sandboxStatusSchema } from '../../shared/event-data.ts';
import {
  claimOf, idempotencyHeaders, locationHeader, presentReason, resourceId, sentenceOrNull, specId, statusReason, timestamp, toTimestamp,
} from '../common-schemas.ts';
import { noBody, noInput, operation } from '../operation.ts';
import { pageKeyOf, pageQuery, pageSchema, presentPage } from '../page-token.ts';
import { invalidRequest } from '../request-input.ts';

const pauseKind = z
  .enum(pauseKinds)
  .meta({ description: '`freeze` keeps memory and processes; `stop` frees the memory and keeps the files.' });

const exposedUrl = z
  .object({
    name: z.string(),
    url: z.string().meta({ format: 'uri', example: 'http://127.0.0.1:41873' }),
    port: z.int().meta({ description: 'The port inside the sandbox.' }),
  })
  .meta({ id: 'ExposedUrl' });

const sandboxResource = z
  .object({
    id: z.string(),
    created_by_user_id: z.string(),
    sandbox_spec_id: z.string(),
    status: sandboxStatusSchema,
    status_detail: z.string().nullable().meta({ description: 'Why, as a sentence.' }),
    status_reason: statusReason.nullable(),
    pause_kind: pauseKind.nullable().meta({ description: 'The tier of rest that is wanted or holds.' }),
    session_api_key: z.string().nullable().meta({
      description: "The sandbox's own key, for clients of its ports; only while it is RUNNING, and not for a key that may only read.",
    }),
    exposed_urls: z.array(exposedUrl).nullable().meta({ description: 'Where its ports are reached; only while it is RUNNING.' }),
    created_at: timestamp,
    updated_at: timestamp,
    last_active_at: timestamp,
  })
  .meta({ id: 'Sandbox', description: 'An execution environment that can be started, paused and resumed.' });

const sandboxSearchQuery = z.object({
  ...pageQuery,
  status__eq: z.enum(sandboxStatuses).optional().meta({ description: 'Only those with this status.' }),
  sandbox_spec_id__eq: specId.optional().meta({ description: 'Only those of this spec.' }),
});

const sandboxStartBody = z.strictObject({ sandbox_spec_id: specId.nullable().default(null) }).meta({ id: 'SandboxStartRequest' });

const sandboxStartQuery = z.object({
  sandbox_spec_id: specId.optional().meta({ description: 'Instead of the one in the body.' }),
});

const sandboxPauseBody = z.strictObject({ pause_kind: pauseKind.default('freeze') }).meta({ id: 'SandboxPauseRequest' });

const sandboxPath = z.object({ id: resourceId });

/** A key that may only read does not get the sandbox's own key, with which it could do more. */
function presentSandbox(sandbox: Sandbox, access: KeyAccess): z.output<typeof sandboxResource> {
  const running = sandbox.status === 'RUNNING';
  return {
    id: sandbox.id,
    created_by_user_id: sandbox.ownerId,
    sandbox_spec_id: sandbox.spec.id,
    status: sandbox.status,
    status_detail: sentenceOrNull(sandbox.statusReason),
    status_reason: presentReason(sandbox.statusReason),
    pause_kind: sandbox.pauseKind,
    session_api_key: running && access === 'full' ? sandbox.sessionApiKey : null,
    exposed_urls: running ? sandbox.exposedUrls.map(({ name, url, port }) => ({ name, url, port })) : null,
    created_at: toTimestamp(sandbox.createdAt),
    updated_at: toTimestamp(sandbox.updatedAt),
    last_active_at: toTimestamp(sandbox.lastActiveAt),
  };
}

const sandboxes = '/api/v1/sandboxes';
const common = { ...noInput, tag: 'Sandboxes', needsKey: true } as const;
const theSandbox = { status: 200, description: 'The sandbox.', schema: sandboxResource };

/** Names the listing in its page tokens. */
const listing = 'sandboxes';

export const sandboxOperations = [
  operation({
    ...common,
    method: 'get',
    path: `${sandboxes}/search`,
    operationId: 'search_sandboxes',
    summary: 'List sandboxes',
    description: 'Newest first.',
    query: sandboxSearchQuery,
    success: { status: 200, description: 'A page of sandboxes.', schema: pageSchema(sandboxResource, 'SandboxPage') },
    failures: [],
    handle: async ({ skep, principal }, { query }) => {
      const filter = {
        ...(query.status__eq !== undefined && { status: query.status__eq }),
        ...(query.sandbox_spec_id__eq !== undefined && { specId: query.sandbox_spec_id__eq }),
      };
      const page = await skep.sandboxes.search(principal.userId, filter, { after: pageKeyOf(listing, query), limit: query.limit });
      return { value: presentPage(page, listing, (sandbox) => presentSandbox(sandbox, principal.access)) };
    },
  }),
  operation({
    ...common,
    method: 'post',
    path: sandboxes,
    operationId: 'start_sandbox',
    summary: 'Start a sandbox',
    description: 'Answers while it is STARTING; ask for it again until it is RUNNING.',
    changes: 'start sandboxes',
    query: sandboxStartQuery,
    headers: idempotencyHeaders,
    body: sandboxStartBody,
    success: { ...theSandbox, status: 201, headers: locationHeader },
    failures: ['sandbox_limit_reached', 'idempotency_conflict', 'sandbox_not_found'],
    handle: async (context, { query, headers, body }) => {
      const { skep, principal } = context;
      const specId = specAskedFor(skep, query.sandbox_spec_id ?? null, body.sandbox_spec_id);
      const claim = claimOf(headers, principal.userId, 'start_sandbox', { specId });
      const sandbox = await skep.sandboxes.start(principal.userId, { specId, ...claim });
      return { value: presentSandbox(sandbox, principal.access), headers: { Location: context.link(`${sandboxes}/${sandbox.id}`) } };
    },
  }),
  operation({
    ...common,
    method: 'get',
    path: `${sandboxes}/{id}`,
    operationId: 'get_sandbox',
    summary: 'Get a sandbox',
    params: sandboxPath,
    success: theSandbox,
    failures: ['sandbox_not_found'],
    handle: async ({ skep, principal }, { params }) => ({
      value: presentSandbox(await skep.sandboxes.get(principal.userId, params.id), principal.access),
    }),
  }),
  operation({
    ...common,
    method: 'delete',
    path: `${sandboxes}/{id}`,
    operationId: 'delete_sandbox',
    summary: 'Delete a sandbox',
    description: 'It is gone, with its files, when this answers. Deleting it again is a success.',
    changes: 'delete sandboxes',
    params: sandboxPath,
    success: { status: 204, description: 'It is gone.', schema: noBody },
    failures: ['sandbox_not_found'],
    handle: async ({ skep, principal }, { params }) => {
      await skep.sandboxes.delete(principal.userId, params.id);
      return { value: undefined };
    },
  }),
  operation({
    ...common,
    method: 'post',
    path: `${sandboxes}/{id}/pause`,
    operationId: 'pause_sandbox',
    summary: 'Pause a sandbox',
    description: 'Pausing a paused one is a success that changes nothing; the answer says which tier holds.',
    changes: 'pause sandboxes',
    params: sandboxPath,
    body: sandboxPauseBody,
    success: theSandbox,
    failures: ['sandbox_not_found', 'sandbox_not_running', 'sandbox_busy', 'runtime_unavailable', 'runtime_timeout'],
    handle: async ({ skep, principal }, { params, body }) => ({
      value: presentSandbox(await skep.sandboxes.pause(principal.userId, params.id, body.pause_kind), principal.access),
    }),
  }),
  operation({
    ...common,
    method: 'post',
    path: `${sandboxes}/{id}/resume`,
    operationId: 'resume_sandbox',
    summary: 'Resume a sandbox',
    description: 'Resuming a running one only notes the activity.',
    changes: 'resume sandboxes',
    params: sandboxPath,
    success: theSandbox,
    failures: [
      'sandbox_not_found', 'sandbox_not_paused', 'sandbox_busy', 'sandbox_limit_reached', 'runtime_unavailable', 'runtime_timeout',
    ],
    handle: async ({ skep, principal }, { params }) => ({
      value: presentSandbox(await skep.sandboxes.resume(principal.userId, params.id), principal.access),
    }),
  }),
];

/** The spec that is named in the query or the body; null is the deployment's default. */
function specAskedFor(skep: Skep, inQuery: string | null, inBody: string | null): string | null {
  if (inQuery !== null && inBody !== null && inQuery !== inBody) {
    throw invalidRequest(['query', 'sandbox_spec_id'], 'must be that of the body, or be left out', 'contradiction');
  }
  const specId = inBody ?? inQuery;
  if (specId !== null) refuseUnknownSpec(skep, specId, inBody === null ? 'query' : 'body');
  return specId;
}

/** Throws `invalid_request` if there is no such spec; its `loc` is the part of the request that named the spec. */
export function refuseUnknownSpec(skep: Skep, specId: string, place: 'query' | 'body'): void {
  if (skep.specs.find(specId) !== undefined) return;
  throw invalidRequest([place, 'sandbox_spec_id'], `There is no sandbox spec ${JSON.stringify(specId)}`, 'unknown_sandbox_spec');
}
