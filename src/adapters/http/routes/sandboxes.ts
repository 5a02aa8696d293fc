import type { Skep } from '../../../application/skep.ts';
import type { Sandbox } from '../../../domain/sandbox.ts';
import { noBody, operation, plain } from '../operation.ts';
import { claimOf, idempotencyHeaders } from '../request/idempotency.ts';
import { decodePageId } from '../request/page-id.ts';
import { invalid } from '../request/problems.ts';
import { pagePresenter } from '../response/page.ts';
import { locationHeader } from '../schema/headers.ts';
import {
  presentSandbox,
  sandboxPage,
  sandboxPath,
  sandboxPauseBody,
  sandboxResource,
  sandboxSearchQuery,
  sandboxStartBody,
  sandboxStartQuery,
} from '../schema/sandbox.ts';

const sandboxes = '/api/v1/sandboxes';
const presentPages = {
  full: pagePresenter((sandbox: Sandbox) => presentSandbox(sandbox, 'full')),
  read: pagePresenter((sandbox: Sandbox) => presentSandbox(sandbox, 'read')),
};
const common = { ...plain, tag: 'Sandboxes', needsKey: true } as const;

/** Names the listing in its page ids. */
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
    success: { status: 200, description: 'A page of sandboxes.', schema: sandboxPage },
    failures: [],
    handle: async ({ skep, principal }, { query }) => {
      const filter = {
        ...(query.status__eq !== undefined && { status: query.status__eq }),
        ...(query.sandbox_spec_id__eq !== undefined && { specId: query.sandbox_spec_id__eq }),
      };
      const after = query.page_id === undefined ? null : decodePageId(listing, query.page_id);
      const page = await skep.sandboxes.search(principal.userId, filter, { after, limit: query.limit });
      return { value: presentPages[principal.access](page, listing) };
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
    success: { status: 201, description: 'The sandbox.', schema: sandboxResource, headers: locationHeader },
    failures: ['sandbox_limit_reached', 'idempotency_conflict', 'sandbox_not_found'],
    handle: async ({ skep, principal, link }, { query, headers, body }) => {
      const specId = specAskedFor(skep, query.sandbox_spec_id ?? null, body.sandbox_spec_id);
      const claim = claimOf(headers, principal.userId, 'start_sandbox', { specId });
      const sandbox = await skep.sandboxes.start(principal.userId, { specId, ...claim });
      return { value: presentSandbox(sandbox, principal.access), headers: { Location: link(`${sandboxes}/${sandbox.id}`) } };
    },
  }),
  operation({
    ...common,
    method: 'get',
    path: `${sandboxes}/{id}`,
    operationId: 'get_sandbox',
    summary: 'Get a sandbox',
    params: sandboxPath,
    success: { status: 200, description: 'The sandbox.', schema: sandboxResource },
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
    success: { status: 200, description: 'The sandbox.', schema: sandboxResource },
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
    success: { status: 200, description: 'The sandbox.', schema: sandboxResource },
    failures: [
      'sandbox_not_found',
      'sandbox_not_paused',
      'sandbox_busy',
      'sandbox_limit_reached',
      'runtime_unavailable',
      'runtime_timeout',
    ],
    handle: async ({ skep, principal }, { params }) => ({
      value: presentSandbox(await skep.sandboxes.resume(principal.userId, params.id), principal.access),
    }),
  }),
];

/** The spec that is named in the query or the body; null is the deployment's default. */
function specAskedFor(skep: Skep, inQuery: string | null, inBody: string | null): string | null {
  if (inQuery !== null && inBody !== null && inQuery !== inBody) {
    throw invalid(['query', 'sandbox_spec_id'], 'must be that of the body, or be left out', 'contradiction');
  }
  const specId = inBody ?? inQuery;
  if (specId !== null) refuseUnknownSpec(skep, specId, inBody === null ? 'query' : 'body');
  return specId;
}

/** Names the place where the unknown spec was asked for. */
export function refuseUnknownSpec(skep: Skep, specId: string, place: 'query' | 'body'): void {
  if (skep.specs.find(specId) !== undefined) return;
  throw invalid([place, 'sandbox_spec_id'], `There is no sandbox spec ${JSON.stringify(specId)}`, 'unknown_sandbox_spec');
}
