import { z } from 'zod';
import { scopeOf } from '../../../domain/principal.ts';
import { sandboxStatuses } from '../../../domain/sandbox.ts';
import { claimOf, idempotencyHeaders, locationHeader, resourceId, specId, text } from '../common-schemas.ts';
import { alias, noBody, noInput, operation } from '../operation.ts';
import { pageKeyOf, pageQuery, pageSchema, presentPage } from '../page-token.ts';
import { claimedParameters, metadataQuery, parametersOf, sandboxParameterFields } from '../sandbox-parameters.ts';
import { pauseKind, presentSandbox, sandboxResource } from '../sandbox-resource.ts';
import { specAskedFor } from './sandbox-specs.ts';

const sandboxSearchQuery = z.object({
  ...pageQuery,
  status__eq: z.enum(sandboxStatuses).optional().meta({ description: 'Only those with this status.' }),
  sandbox_spec_id__eq: specId.optional().meta({ description: 'Only those of this spec.' }),
  metadata__eq: metadataQuery.optional().meta({
    description: 'Only those whose metadata has this `key=value`; repeat the parameter for each. Each key and value is percent-encoded.',
  }),
});

const sandboxStartBody = z
  .strictObject({ sandbox_spec_id: specId.nullable().default(null), ...sandboxParameterFields })
  .meta({
    id: 'SandboxStartRequest',
    example: { sandbox_spec_id: 'workspace', env: { CI: '1' }, metadata: { task: '42' }, timeout_seconds: 3600 },
  });

const sandboxStartQuery = z.object({
  sandbox_spec_id: specId.optional().meta({ description: 'Instead of the one in the body.' }),
});

const sandboxAdoptBody = z.strictObject({
  user_id: text(100).min(1).nullable().default(null).meta({ description: 'Its owner. Default: the one that the runtime knows.' }),
  sandbox_spec_id: specId.nullable().default(null).meta({ description: 'Its spec. Default: the one that the runtime knows.' }),
}).meta({ id: 'SandboxAdoptRequest' });

const sandboxPauseBody = z.strictObject({ pause_kind: pauseKind.optional() }).meta({ id: 'SandboxPauseRequest' });

const sandboxUsage = z
  .object({
    cpu_ms: z.int().nullable().meta({ description: 'CPU time of its present run, in milliseconds.' }),
    memory_bytes: z.int().nullable(),
    disk_bytes: z.int().nullable().meta({ description: 'Files that it added or changed.' }),
  })
  .meta({ id: 'SandboxUsage' });

export const sandboxPath = z.object({ id: resourceId });

const sandboxes = '/api/v1/sandboxes';
const common = { ...noInput, tag: 'Sandboxes', needsKey: true } as const;
const theSandbox = { status: 200, description: 'The sandbox.', schema: sandboxResource };
const one = { ...common, path: `${sandboxes}/{id}`, params: sandboxPath };
/** Something that is done with one sandbox, and answered with it. */
const action = { ...common, method: 'post', params: sandboxPath, success: theSandbox } as const;

/** Names the listing in its page tokens. */
const listing = 'sandboxes';

const search = operation({
  ...common,
  method: 'get',
  path: `${sandboxes}/search`,
  operationId: 'search_sandboxes',
  summary: 'List sandboxes',
  description: 'Newest first.',
  query: sandboxSearchQuery,
  success: { status: 200, description: 'A page of sandboxes.', schema: pageSchema(sandboxResource, 'SandboxPage') },
  failures: [],
  handle: async (context, { query }) => {
    const { skep, principal } = context;
    const filter = { status: query.status__eq, specId: query.sandbox_spec_id__eq, metadata: query.metadata__eq };
    const page = await skep.sandboxes.search(scopeOf(principal), filter, { after: pageKeyOf(context, listing, query), limit: query.limit });
    return presentPage(context, page, listing, (sandbox) => presentSandbox(sandbox, context));
  },
});

export const sandboxOperations = [
  search,
  alias(search, sandboxes, 'list_sandboxes'),
  operation({
    ...common,
    method: 'post',
    path: sandboxes,
    operationId: 'start_sandbox',
    summary: 'Start a sandbox',
    description: 'Answers while it is STARTING; ask for it again until it is RUNNING. If the runtime stays silent, it becomes an ERROR.',
    query: sandboxStartQuery,
    headers: idempotencyHeaders,
    body: sandboxStartBody,
    success: { ...theSandbox, status: 201, headers: locationHeader },
    failures: ['sandbox_limit_reached', 'idempotency_conflict', 'sandbox_not_found'],
    handle: async (context, { query, headers, body }) => {
      const { skep, principal } = context;
      const specId = specAskedFor(skep, query.sandbox_spec_id ?? null, body.sandbox_spec_id);
      const parameters = parametersOf(body);
      const claim = claimOf(headers, principal.userId, 'start_sandbox', { specId, ...claimedParameters(parameters) });
      const sandbox = await skep.sandboxes.start(principal.userId, { specId, parameters, ...claim });
      context.response.location(context.link(`${sandboxes}/${sandbox.id}`));
      return presentSandbox(sandbox, context);
    },
  }),
  operation({
    ...one,
    method: 'get',
    operationId: 'get_sandbox',
    summary: 'Get a sandbox',
    success: theSandbox,
    failures: ['sandbox_not_found'],
    handle: async (context, { params }) =>
      presentSandbox(await context.skep.sandboxes.get(scopeOf(context.principal), params.id), context),
  }),
  operation({
    ...common,
    method: 'get',
    path: `${sandboxes}/{id}/usage`,
    operationId: 'get_sandbox_usage',
    summary: 'What a sandbox takes',
    description: 'May take seconds if it has many files. What is not known, or not taken since it does not run, is null.',
    params: sandboxPath,
    success: { status: 200, description: 'CPU, memory and disk.', schema: sandboxUsage },
    failures: ['sandbox_not_found', 'runtime_unavailable', 'runtime_timeout'],
    handle: async ({ skep, principal }, { params }) => {
      const { cpuMs, memoryBytes, diskBytes } = await skep.sandboxes.usage(scopeOf(principal), params.id);
      return { cpu_ms: cpuMs, memory_bytes: memoryBytes, disk_bytes: diskBytes };
    },
  }),
  operation({
    ...one,
    method: 'delete',
    operationId: 'delete_sandbox',
    summary: 'Delete a sandbox',
    description:
      'No caller sees it any more when this answers. Its processes and files are removed by then too, unless the runtime takes longer ' +
      'than 20 seconds or does not answer: then later. Deleting it again is a success.',
    success: { status: 204, description: 'It is deleted.', schema: noBody },
    failures: ['sandbox_not_found'],
    handle: async ({ skep, principal }, { params }) => await skep.sandboxes.delete(scopeOf(principal), params.id),
  }),
  operation({
    ...action,
    path: `${sandboxes}/{id}/pause`,
    operationId: 'pause_sandbox',
    summary: 'Pause a sandbox',
    description: 'Pausing a paused one is a success that changes nothing, but `stop` stops a frozen one; the answer says which tier holds.',
    body: sandboxPauseBody,
    failures: ['sandbox_not_found', 'sandbox_not_running', 'sandbox_busy', 'freeze_unsupported', 'runtime_unavailable', 'runtime_timeout'],
    handle: async (context, { params, body }) =>
      presentSandbox(await context.skep.sandboxes.pause(scopeOf(context.principal), params.id, body.pause_kind), context),
  }),
  operation({
    ...action,
    path: `${sandboxes}/{id}/resume`,
    operationId: 'resume_sandbox',
    summary: 'Resume a sandbox',
    description: 'Resuming a running one only notes the activity.',
    failures: [
      'sandbox_not_found', 'sandbox_not_paused', 'sandbox_busy', 'sandbox_in_quarantine', 'sandbox_limit_reached', 'runtime_unavailable',
      'runtime_timeout',
    ],
    handle: async (context, { params }) =>
      presentSandbox(await context.skep.sandboxes.resume(scopeOf(context.principal), params.id), context),
  }),
  operation({
    ...action,
    path: `${sandboxes}/{id}/adopt`,
    operationId: 'adopt_sandbox',
    adminOnly: true,
    summary: 'Give a sandbox in quarantine to an owner',
    description:
      "Needs an administrator's key. Such a key sees the sandboxes in quarantine in its list; their owner is `skep:quarantine`. " +
      'The sandbox stays stopped until it is resumed.',
    body: sandboxAdoptBody,
    failures: ['sandbox_not_found', 'sandbox_busy', 'runtime_unavailable', 'runtime_timeout'],
    handle: async (context, { params, body: { user_id: ownerId, sandbox_spec_id: specId } }) =>
      presentSandbox(await context.skep.sandboxes.adopt(scopeOf(context.principal), params.id, { ownerId, specId }), context),
  }),
];
