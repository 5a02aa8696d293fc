import { hash } from 'node:crypto';
import { setImmediate as otherEvents } from 'node:timers/promises';
import pLimit from 'p-limit';
import type { Skep } from '../../application/skep.ts';
import { Failure } from '../../domain/failure.ts';
import type { PageKey } from '../../domain/page.ts';
import { isSameSecret } from '../../domain/credentials.ts';
import type { RequestContext } from '../http/request-context.ts';
import { ConnectError } from './connect-protocol.ts';
import { sandboxToken } from './sandbox-token.ts';

/** The operation that a signed URL allows, in E2B's terms. */
type FileOperation = 'read' | 'write';

export interface SignedFile {
  readonly path: string;
  readonly operation: FileOperation;
  readonly user: string;
  readonly signature: string;
  /** In seconds since the epoch; null for never. */
  readonly expiration: string | null;
}

/** Returns true if the signature was made with the token. Source: `getSignature` of the npm package `e2b`. */
function isSignedBy(token: string, { path, operation, user, signature, expiration }: SignedFile): boolean {
  const text = [path, operation, user, token, ...(expiration === null ? [] : [expiration])].join(':');
  return isSameSecret(signature, `v1_${hash('sha256', text, 'base64').replace(/=+$/, '')}`);
}

const signatureForm = /^v1_[A-Za-z0-9+/]{43}$/;
const pageSize = 100;

/** The most requests with signatures that can wait. */
const maxWaiting = 20;

/**
 * Finds the token that made the signature. The URL does not name the sandbox, so this tries the tokens of all sandboxes, the newest first.
 * A wrong signature counts as a wrong key. Throws `unauthenticated` if the URL has expired, `unauthorized` if no token made the signature,
 * `rate_limited`, or an `AbortError` if the client leaves.
 */
export async function findSigner({ skep, http, request, closed }: RequestContext, signed: SignedFile) {
  const { expiration } = signed;
  // First, because anybody can send it, and it counts as no wrong key.
  const isExpired = expiration !== null && !(Number(expiration) * 1000 > skep.clock.now());
  if (isExpired) throw new ConnectError('unauthenticated', 'signature is already expired');
  if (searches.pendingCount >= maxWaiting) throw new Failure('rate_limited', { limit: 'signed_urls', retryAfterSeconds: 1 });
  return await searches(() => http.authenticator.authenticateSignature(request, () => search(skep, signed, closed)));
}

/** One search at a time. Forged signatures delay other signed URLs, and never use the whole time of the event loop. */
const searches = pLimit(1);

/** Returns the sandbox, and the digest of the key whose token made the signature. */
async function search(skep: Skep, signed: SignedFile, signal: AbortSignal) {
  if (!signatureForm.test(signed.signature)) throw new Failure('unauthorized', {});
  const digests = new Map<string, readonly string[]>();
  let after: PageKey | null = null;
  do {
    const page: Awaited<ReturnType<Skep['sandboxes']['search']>> = await skep.sandboxes.search(null, {}, { after, limit: pageSize });
    for (const sandbox of page.items) {
      await otherEvents(undefined, { signal });
      const ofOwner = digests.get(sandbox.ownerId) ?? (await skep.auth.digestsOf?.(sandbox.ownerId)) ?? [];
      digests.set(sandbox.ownerId, ofOwner);
      const digest = ofOwner.find((one) => isSignedBy(sandboxToken(skep, sandbox.id, one), signed));
      if (digest === undefined) continue;
      return { sandbox, digest };
    }
    after = page.next;
  } while (after !== null);
  throw new Failure('unauthorized', {});
}
