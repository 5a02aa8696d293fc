import { Failure, type FailureCode, isFailure } from '../../domain/failure.ts';
import { type Caller, isInScope, type Principal } from '../../domain/principal.ts';
import { exposedPort, isWokenByAccess, type Sandbox } from '../../domain/sandbox.ts';
import { isSameSecret } from '../../domain/credentials.ts';
import { activityIntervalMs } from '../../domain/idle-policy.ts';
import type { SandboxUseCaseDeps } from './sandboxes.ts';
import { findSandbox, getSandbox } from './sandbox-records.ts';
import { wakeSandbox } from './wake-sandbox.ts';

/** The caller that opens a port of a sandbox. */
export interface PortVisitor {
  /** The key of any kind that the visitor sent. Null if there is none. */
  readonly key: string | null;
  /** Throws `unauthorized`. If the port is public, a wrong credential that may be for the program does not count as a failed attempt. */
  identify(port: { readonly isPublic: boolean }): Promise<Principal>;
}

export interface PortAccess {
  readonly sandbox: Sandbox;
  /** True if only the spec (a public port) lets the visitor in. Such a visitor does not wake the sandbox. */
  readonly isAnonymous: boolean;
}

/** How the proxy treats a failed authorization for a port. */
interface PortRefusal {
  /** The visitor reaches the port nevertheless if it is public, but without the rights of a credential. */
  readonly isIgnoredIfPublic: boolean;
  /** The visitor's open connections to the port end. */
  readonly endsConnections: boolean;
  /** The log gets an entry, because an operator wants to see who tries what. */
  readonly isLogged: boolean;
}

const portRefusals: Readonly<Partial<Record<FailureCode, PortRefusal>>> = {
  unauthorized: { isIgnoredIfPublic: true, endsConnections: true, isLogged: true },
  forbidden: { isIgnoredIfPublic: true, endsConnections: true, isLogged: true },
  sandbox_not_found: { isIgnoredIfPublic: true, endsConnections: true, isLogged: true },
  // The visitor has the right to see the sandbox, and a public port is exposed.
  port_not_exposed: { isIgnoredIfPublic: false, endsConnections: true, isLogged: false },
  // Says that there are too many logins or connections, and nothing about those that are open.
  rate_limited: { isIgnoredIfPublic: false, endsConnections: false, isLogged: true },
};

/** Returns null for any other failure, such as a store that is not available: it says nothing about the visitor. */
export function portRefusalOf(error: unknown): PortRefusal | null {
  return isFailure(error) ? portRefusals[error.code] ?? null : null;
}

/**
 * Checks whether the visitor may reach the port: with the sandbox's own key, with the right to change the sandbox, or because the spec
 * makes the port public. Other visitors learn nothing about the sandbox. Throws `unauthorized`, `forbidden` (a read-only key),
 * `sandbox_not_found`, `port_not_exposed`, and the errors of `identify`.
 */
export async function authorizePort(
  { store }: SandboxUseCaseDeps, id: string, port: number, visitor: PortVisitor,
): Promise<PortAccess> {
  const sandbox = await findSandbox(store, null, id);
  if (sandbox !== null && visitor.key !== null && isSameSecret(visitor.key, sandbox.sessionApiKey)) {
    return requireExposed(sandbox, port, false);
  }
  const isPublic = sandbox !== null && exposedPort(sandbox, port)?.public === true;
  try {
    const principal = await visitor.identify({ isPublic });
    if (sandbox === null || !isInScope(sandbox.ownerId, principal)) throw new Failure('sandbox_not_found', { id });
    if (principal.access === 'read') throw new Failure('forbidden', { action: 'reach the ports of a sandbox', access: 'full' });
    return requireExposed(sandbox, port, false);
  } catch (error) {
    if (sandbox !== null && isPublic && portRefusalOf(error)?.isIgnoredIfPublic === true) return requireExposed(sandbox, port, true);
    throw error;
  }
}

function requireExposed(sandbox: Sandbox, port: number, isAnonymous: boolean): PortAccess {
  if (exposedPort(sandbox, port) !== null) return { sandbox, isAnonymous };
  throw new Failure('port_not_exposed', { id: sandbox.id, port, exposed: sandbox.spec.ports.map((exposed) => exposed.port) });
}

/** The port that a link gives access to. `expiresAt` is in milliseconds since the epoch. */
export interface PortGrant {
  readonly sandboxId: string;
  readonly port: number;
  readonly expiresAt: number;
}

/** Returns the grant for a link to the port. Does not wake the sandbox. Throws `sandbox_not_found` or `port_not_exposed`. */
export async function createPortLink(
  { store, clock }: SandboxUseCaseDeps, caller: Caller | null, id: string, port: number, expiresInMs: number,
): Promise<PortGrant> {
  requireExposed(await getSandbox(store, caller, id), port, false);
  return { sandboxId: id, port, expiresAt: clock.now() + expiresInMs };
}

export interface OpenPort extends PortAccess {
  readonly url: string;
  /** The sandbox's own key, if the program on the port checks it and the visitor has a credential; null otherwise. */
  readonly sessionKey: string | null;
}

/**
 * Returns the URL of the port, and notes the activity. Wakes the sandbox if its spec says so and the visitor is not anonymous. Throws
 * the errors of `authorizePort` and `wakeSandbox`, and `port_closed` (the runtime gave the port no address).
 */
export async function openPort(deps: SandboxUseCaseDeps, id: string, port: number, visitor: PortVisitor): Promise<OpenPort> {
  const { sandbox: found, isAnonymous } = await authorizePort(deps, id, port, visitor);
  const sandbox = await wakeSandbox(deps, found, { mayResume: !isAnonymous && isWokenByAccess(found) });
  const url = sandbox.exposedUrls.find((exposed) => exposed.port === port)?.url;
  if (url === undefined) throw new Failure('port_closed', { id, port });
  const sessionKey = !isAnonymous && exposedPort(sandbox, port)?.wantsSessionKey === true ? sandbox.sessionApiKey : null;
  return { sandbox: await notePortActivity(deps, sandbox), isAnonymous, url, sessionKey };
}

/** Writes that the sandbox is active, unless that was written a short time ago. Returns the sandbox with its last written time. */
export async function notePortActivity({ store, clock }: SandboxUseCaseDeps, sandbox: Sandbox): Promise<Sandbox> {
  const now = clock.now();
  if (now - sandbox.lastActiveAt < activityIntervalMs(sandbox)) return sandbox;
  await store.sandboxes.touch(sandbox.id, now);
  return { ...sandbox, lastActiveAt: now };
}

/**
 * Returns true if the sandbox still has the address. Call it after connecting, since the runtime may reuse addresses for other sandboxes,
 * and after a failed connect. Throws the failures of the runtime.
 */
export async function isPortAddress({ runtime }: SandboxUseCaseDeps, opened: OpenPort): Promise<boolean> {
  const { state, exposedUrls } = await runtime.inspect(opened.sandbox.instanceId);
  return state === 'running' && exposedUrls.some(({ url }) => url === opened.url);
}
