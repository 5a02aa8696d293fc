import type { IncomingMessage } from 'node:http';
import proxyAddress from 'proxy-addr';
import type { PortVisitor } from '../../application/sandboxes/sandboxes.ts';
import type { Skep } from '../../application/skep.ts';
import { Failure, isFailureOf } from '../../domain/failure.ts';
import { containsKey, isSameSecret } from '../../domain/credentials.ts';
import type { Principal } from '../../domain/principal.ts';
import type { Sandbox } from '../../domain/sandbox.ts';
import type { Authenticator } from '../http/authentication.ts';
import type { PortToken, PortTokens } from '../http/port-links.ts';
import { bearerOf, headerOf, nonBlankHeaderOf } from '../http/request-input.ts';
import { digestLength } from '../shared/key-digest.ts';
import { cookieTokens, mayUseCookie } from './port-cookie.ts';
import type { PortTarget } from './port-target.ts';

export interface VisitorDeps {
  readonly skep: Skep;
  readonly authenticator: Authenticator;
  readonly tokens: PortTokens;
  readonly url: string;
  /** Whether the address is that of a proxy whose `X-Forwarded-For` names the client. */
  readonly isTrusted: (address: string, hop: number) => boolean;
}

/** A valid link, with its token as it was sent. */
type Grant = PortToken & { readonly text: string };

/** A visitor with its credential, and with the data for later checks. */
export interface Visitor extends PortVisitor {
  /** The visitor's address. */
  readonly client: string;
  /** The link that the visitor used; null if it used none. */
  readonly grant: Grant | null;
  /** The visitor for later checks, which do not count as login attempts. The id is the same for all visitors with the same credential. */
  readonly forRechecks: PortVisitor & { readonly id: string };
}

/**
 * Reads the visitor's credential. A key in `X-Session-API-Key` comes first, then a link or its cookie, then `Authorization: Bearer`. Calls
 * `identified` with the owner of a valid credential when it is known. A visitor with the key of the sandbox has none.
 */
export function visitorOf(
  deps: VisitorDeps, request: IncomingMessage, target: PortTarget, identified: (principal: Principal) => void,
): Visitor {
  const { skep, authenticator } = deps;
  const client = proxyAddress(request, deps.isTrusted);
  const grant = nonBlankHeaderOf(request, 'x-session-api-key') === null ? grantOf(deps, request, target) : null;
  const key = grant === null ? keyOf(request) : null;
  const identifyAgain = async (): Promise<Principal> =>
    (grant === null ? await skep.auth.authenticate(key) : await identifyByGrant(skep, grant));
  const mayBeForProgram = key === bearerOf(request);
  const id = grant === null ? `key ${key ?? ''}` : `link ${grant.digest} ${grant.expiresAt}`;
  return {
    client,
    key,
    grant,
    async identify({ isPublic }) {
      // The program at a public port can have bearer tokens of its own, which are wrong for Skep. They are no failed logins.
      const isLogin = grant === null && !(isPublic && mayBeForProgram);
      const principal = isLogin ? await authenticator.authenticate({ ip: client }, key) : await identifyAgain();
      identified(principal);
      return principal;
    },
    forRechecks: { id, key, identify: identifyAgain },
  };
}

/** Returns the first valid token for this port. Uses the cookie only if a browser may send it here. */
function grantOf({ skep, tokens, url }: VisitorDeps, request: IncomingMessage, target: PortTarget): Grant | null {
  if (target.by === 'headers') return null;
  const isRead = request.method === 'GET' || request.method === 'HEAD';
  const linked = target.token !== null && isRead ? [target.token] : [];
  const texts = [...linked, ...(mayUseCookie(request, target.by, url) ? cookieTokens(request) : [])];
  for (const text of texts) {
    const token = tokens.decode(text);
    const isOfPort = token !== null && token.sandboxId === target.sandboxId && token.port === target.port;
    if (isOfPort && token.expiresAt > skep.clock.now()) return { ...token, text };
  }
  return null;
}

async function identifyByGrant({ auth, clock }: Skep, { expiresAt, digest }: PortToken): Promise<Principal> {
  if (expiresAt <= clock.now() || auth.authenticateDigest === undefined) throw new Failure('unauthorized', {});
  return await auth.authenticateDigest(digest);
}

/** The headers in which clients send credentials of Skep, and programs in sandboxes expect their own. */
const sharedHeaders = ['authorization', 'x-api-key', 'x-access-token'];

/** Returns the names of these headers that have a credential of Skep, which is not for the program in the sandbox. */
export async function ownCredentialHeaders(skep: Skep, request: IncomingMessage, sandbox: Sandbox): Promise<ReadonlySet<string>> {
  const own = sharedHeaders.map(async (name) => ((await hasOwnCredential(skep, request, name, sandbox)) ? [name] : []));
  return new Set((await Promise.all(own)).flat());
}

async function hasOwnCredential(skep: Skep, request: IncomingMessage, name: string, sandbox: Sandbox): Promise<boolean> {
  const texts = possibleCredentials(headerOf(request, name) ?? '');
  return (await Promise.all(texts.map((text) => isOwnCredential(skep, text, sandbox)))).includes(true);
}

/** No client sends more values than this in one header by mistake. */
const maxValues = 8;

/** A client may send a key by mistake in a form that Skep does not accept: with another scheme, as a password, or beside another value. */
function possibleCredentials(header: string): readonly string[] {
  const values = [header, ...header.split(',', maxValues)].map((value) => value.trim());
  const texts = values.flatMap((value) => {
    const word = value.split(/\s+/).at(-1) ?? '';
    const [user = '', ...password] = /^basic\s/i.test(value) ? Buffer.from(word, 'base64').toString().split(':') : [];
    return [value, word, user, password.join(':')];
  });
  return [...new Set(texts)].filter((text) => text !== '');
}

async function isOwnCredential({ auth }: Skep, text: string, { sessionApiKey }: Sandbox): Promise<boolean> {
  if (containsKey(text) || isSameSecret(text, sessionApiKey) || (await isAccepted(auth.authenticate(text)))) return true;
  // A token of E2B's clients begins with the digest of its key.
  return auth.authenticateDigest !== undefined && (await isAccepted(auth.authenticateDigest(text.slice(0, digestLength))));
}

async function isAccepted(identified: Promise<unknown>): Promise<boolean> {
  try {
    await identified;
    return true;
  } catch (error) {
    return !isFailureOf(error, 'unauthorized');
  }
}

/** The header in which E2B's clients send the sandbox's own key. */
export const e2bKeyHeader = 'e2b-traffic-access-token';

function keyOf(request: IncomingMessage): string | null {
  return nonBlankHeaderOf(request, 'x-session-api-key') ?? nonBlankHeaderOf(request, e2bKeyHeader) ?? bearerOf(request);
}
