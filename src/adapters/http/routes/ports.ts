import { z } from 'zod';
import type { PortGrant } from '../../../application/sandboxes/sandboxes.ts';
import { Failure } from '../../../domain/failure.ts';
import { keyDigest } from '../../shared/key-digest.ts';
import { timestamp, toTimestamp } from '../common-schemas.ts';
import { operation } from '../operation.ts';
import { createPortTokens, linkParameter, urlForBrowsers } from '../port-links.ts';
import type { RequestContext } from '../request-context.ts';

const longestSeconds = 7 * 24 * 60 * 60;

const portLinkBody = z.strictObject({
  expires_in_seconds: z.int().min(1).max(longestSeconds).default(3600).describe('How long the link, and pages opened by it, can be used.'),
}).meta({ id: 'PortLinkRequest' });

const portLink = z
  .object({
    url: z.string().meta({ format: 'uri', description: 'Open it in a browser.' }),
    expires_at: timestamp.describe('Not later than your key expires.'),
  })
  .meta({ id: 'PortLink', description: 'Gives everybody who has it access to one port of one sandbox, until it or your key expires.' });

export const portOperations = [
  operation('post', '/api/v1/sandboxes/{id}/ports/{port}/links', {
    operationId: 'create_port_link',
    tag: 'Sandboxes',
    summary: 'Create a link to a port',
    description: 'For browsers, which cannot send a key. The link ends when your key ends. Creating it does not resume the sandbox.',
    body: portLinkBody,
    success: { status: 201, description: 'The link.', schema: portLink },
    failures: ['sandbox_not_found', 'port_not_exposed', 'proxy_off'],
    handle: async (context, { params: { id, port }, body }) => {
      const { skep, principal } = context;
      const grant = await skep.sandboxes.createPortLink(principal, id, port, body.expires_in_seconds * 1000);
      const expiresAt = Math.min(grant.expiresAt, principal.expiresAt ?? Infinity);
      return { url: linkOf(context, { ...grant, expiresAt }), expires_at: toTimestamp(expiresAt) };
    },
  }),
];

/** A link has only the digest of its maker's key. Throws `forbidden` if the deployment does not find a key by its digest. */
function linkOf({ skep, credential, http: { options: { proxy } } }: RequestContext, { sandboxId, port, expiresAt }: PortGrant): string {
  if (credential === null || skep.auth.authenticateDigest === undefined) {
    throw new Failure('forbidden', { action: 'make a link, because this deployment does not find keys by their digests', access: null });
  }
  if (proxy === undefined) throw new Failure('proxy_off', {});
  const token = createPortTokens(skep).encode([sandboxId, port, expiresAt, keyDigest(credential)]);
  return `${urlForBrowsers(proxy, sandboxId, port)}/?${linkParameter}=${token}`;
}
