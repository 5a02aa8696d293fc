import { z } from 'zod';
import { expiresAt } from '../../domain/idle-policy.ts';
import { pauseOf, pauseKinds, type Sandbox } from '../../domain/sandbox.ts';
import { eventActors, sandboxStatusSchema } from '../shared/event-data.ts';
import { presentStatus, statusFields, statusReason, timestamp, toTimestamp } from './common-schemas.ts';
import { portUrl, type ProxyAddress } from './port-links.ts';
import type { RequestContext } from './request-context.ts';

export const pauseKind = z
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
    status: sandboxStatusSchema,
    ...statusFields,
    pause_kind: pauseKind.nullable().meta({ description: 'The tier of rest that is wanted or holds.' }),
    paused_by: z.enum(eventActors).nullable()
      .meta({ description: 'Who paused it, until it runs again: its owner, a rule of Skep, or something outside.' }),
    paused_reason: statusReason.nullable(),
    session_api_key: z.string().nullable().meta({
      description: "The sandbox's own key, for clients of its ports; only while it is RUNNING, and not for a key that may only read.",
    }),
    exposed_urls: z.array(exposedUrl).nullable().meta({ description: 'Where its ports are reached; only while it is RUNNING.' }),
    metadata: z.record(z.string(), z.string()).meta({ description: 'What its owner wrote down with it at the start.' }),
    created_at: timestamp,
    updated_at: timestamp,
    last_active_at: timestamp,
    expires_at: timestamp.nullable().meta({ description: 'When it is deleted, whatever it does; null for never.' }),
  })
  .meta({ id: 'Sandbox', description: 'An execution environment that can be started, paused and resumed.' });

/** A key that may only read does not get the sandbox's own key, with which it could do more. */
export function presentSandbox(
  sandbox: Sandbox, { principal: { access }, http: { options } }: RequestContext,
): z.output<typeof sandboxResource> {
  const running = sandbox.status === 'RUNNING';
  const end = expiresAt(sandbox);
  return {
    id: sandbox.id,
    created_by_user_id: sandbox.ownerId,
    sandbox_spec_id: sandbox.spec.id,
    status: sandbox.status,
    ...presentStatus(sandbox.statusReason),
    pause_kind: sandbox.pauseKind,
    paused_by: pauseOf(sandbox)?.actor ?? null,
    paused_reason: presentStatus(pauseOf(sandbox)?.reason ?? null).status_reason,
    session_api_key: running && access !== 'read' ? sandbox.sessionApiKey : null,
    exposed_urls: running ? exposedUrlsOf(sandbox, options.proxy) : null,
    metadata: { ...sandbox.metadata },
    created_at: toTimestamp(sandbox.createdAt),
    updated_at: toTimestamp(sandbox.updatedAt),
    last_active_at: toTimestamp(sandbox.lastActiveAt),
    expires_at: end === null ? null : toTimestamp(end),
  };
}

/** By the proxy, if there is one: the addresses of the runtime are for the server's machine. */
function exposedUrlsOf({ id, exposedUrls }: Sandbox, proxy: ProxyAddress | undefined): z.output<typeof exposedUrl>[] {
  return exposedUrls.map(({ name, url, port }) => ({ name, url: proxy === undefined ? url : portUrl(proxy, id, port), port }));
}
