import { z } from 'zod';
import type { KeyAccess } from '../../../domain/principal.ts';
import { pauseKinds, sandboxStatuses, type Sandbox } from '../../../domain/sandbox.ts';
import { pageQuery, pageSchema, resourceId, specId, timestamp, toTimestamp } from './common.ts';

export const sandboxStatus = z.enum(sandboxStatuses).meta({ id: 'SandboxStatus' });

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

export const sandboxResource = z
  .object({
    id: z.string(),
    created_by_user_id: z.string(),
    sandbox_spec_id: z.string(),
    status: sandboxStatus,
    status_detail: z.string().nullable().meta({ description: 'Why, in words.' }),
    pause_kind: pauseKind.nullable().meta({ description: 'The tier of rest that is wanted or holds.' }),
    session_api_key: z.string().nullable().meta({
      description: "The sandbox's own key, for whoever talks to its exposed ports; only while it is RUNNING, and not for an API key that may only read.",
    }),
    exposed_urls: z.array(exposedUrl).nullable().meta({ description: 'Where its ports are reached; only while it is RUNNING.' }),
    created_at: timestamp,
    updated_at: timestamp,
    last_active_at: timestamp,
  })
  .meta({ id: 'Sandbox', description: 'An execution environment that can be started, paused and resumed.' });

export const sandboxPage = pageSchema(sandboxResource, 'SandboxPage');

export const sandboxSearchQuery = z.object({
  ...pageQuery,
  status__eq: z.enum(sandboxStatuses).optional().meta({ description: 'Only those with this status.' }),
  sandbox_spec_id__eq: specId.optional().meta({ description: 'Only those of this spec.' }),
});

export const sandboxStartBody = z
  .strictObject({ sandbox_spec_id: specId.nullable().default(null) })
  .meta({ id: 'SandboxStartRequest' });

export const sandboxStartQuery = z.object({
  sandbox_spec_id: specId.optional().meta({ description: 'Instead of the one in the body.' }),
});

export const sandboxPauseBody = z
  .strictObject({ pause_kind: pauseKind.default('freeze') })
  .meta({ id: 'SandboxPauseRequest' });

export const sandboxPath = z.object({ id: resourceId });

/** A key that may only read is not told the sandbox's own key, with which more than reading could be done. */
export function presentSandbox(sandbox: Sandbox, access: KeyAccess): z.output<typeof sandboxResource> {
  const running = sandbox.status === 'RUNNING';
  return {
    id: sandbox.id,
    created_by_user_id: sandbox.ownerId,
    sandbox_spec_id: sandbox.spec.id,
    status: sandbox.status,
    status_detail: sandbox.statusDetail,
    pause_kind: sandbox.pauseKind,
    session_api_key: running && access === 'full' ? sandbox.sessionApiKey : null,
    exposed_urls: running ? sandbox.exposedUrls.map(({ name, url, port }) => ({ name, url, port })) : null,
    created_at: toTimestamp(sandbox.createdAt),
    updated_at: toTimestamp(sandbox.updatedAt),
    last_active_at: toTimestamp(sandbox.lastActiveAt),
  };
}
