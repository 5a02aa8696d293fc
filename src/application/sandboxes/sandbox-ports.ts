import { Failure, isFailureOf } from '../../domain/failure.ts';
import { isInScope, type OwnerScope, type Principal, scopeOf } from '../../domain/principal.ts';
import { exposedPort, isSameSecret, isWokenByAccess, touchIntervalMs } from '../../domain/port-access.ts';
import type { Sandbox } from '../../domain/sandbox.ts';
import { resumeSandbox } from './resume-sandbox.ts';
import type { SandboxesDeps } from './sandboxes.ts';
import { awaitStatus } from './sandbox-reconciler.ts';
import { findSandbox, getSandbox } from './sandbox-records.ts';

/** Who asks for a port of a sandbox. */
export interface PortVisitor {
  /** The key that it sent, of whatever kind; null if there is none. */
  readonly key: string | null;
  /** Throws `unauthorized`. A bad credential counts as an attempt only if one is needed: programs have credentials of their own. */
  identify(isNeeded: boolean): Promise<Principal>;
}

export interface PortAccess {
  readonly sandbox: Sandbox;
  /** True if nothing but the spec lets the visitor in. It wakes nothing. */
  readonly isAnonymous: boolean;
}

/**
 * Checks whether the visitor may reach the port: by the sandbox's own key, as somebody who may change the sandbox, or because the spec
 * makes the port public. A visitor who may not reach it learns nothing about the sandbox. Throws `unauthorized`, `forbidden` (a key that
 * may only read), `sandbox_not_found`, `port_not_exposed`, and what `identify` throws.
 */
export async function authorizePort({ store }: SandboxesDeps, id: string, port: number, visitor: PortVisitor): Promise<PortAccess> {
  const sandbox = await findSandbox(store, null, id);
  if (sandbox !== null && visitor.key !== null && isSameSecret(visitor.key, sandbox.sessionApiKey)) {
    return requireExposed(sandbox, port, false);
  }
  const isPublic = sandbox !== null && exposedPort(sandbox, port)?.public === true;
  try {
    const principal = await visitor.identify(!isPublic);
    if (sandbox === null || !isInScope(sandbox.ownerId, scopeOf(principal))) throw new Failure('sandbox_not_found', { id });
    if (principal.access === 'read') throw new Failure('forbidden', { action: 'reach the ports of a sandbox' });
    return requireExposed(sandbox, port, false);
  } catch (error) {
    const isRefused = (['unauthorized', 'forbidden', 'sandbox_not_found'] as const).some((code) => isFailureOf(error, code));
    if (sandbox !== null && isPublic && isRefused) return requireExposed(sandbox, port, true);
    throw error;
  }
}

function requireExposed(sandbox: Sandbox, port: number, isAnonymous: boolean): PortAccess {
  if (exposedPort(sandbox, port) !== null) return { sandbox, isAnonymous };
  throw new Failure('port_not_exposed', { id: sandbox.id, port, exposed: sandbox.spec.ports.map((one) => one.port) });
}

/** What a link gives access to, until when, in milliseconds since the epoch. */
export interface PortGrant {
  readonly sandboxId: string;
  readonly port: number;
  readonly expiresAt: number;
}

/** Returns what a link to the port gives access to. It wakes nothing. Throws `sandbox_not_found` or `port_not_exposed`. */
export async function createPortLink(
  { store, clock }: SandboxesDeps, scope: OwnerScope, id: string, port: number, expiresInMs: number,
): Promise<PortGrant> {
  requireExposed(await getSandbox(store, scope, id), port, false);
  return { sandboxId: id, port, expiresAt: clock.now() + expiresInMs };
}

export interface OpenPort extends PortAccess {
  readonly url: string;
  /** The sandbox's own key, if the program on the port checks it and the visitor has a credential; null otherwise. */
  readonly sessionKey: string | null;
}

/** How long visitors wait for a sandbox that wakes. */
const wakeWithinMs = 60_000;

/** How often a sandbox on the way is waited for. Each wait is bounded too. */
const maxTries = 4;

/**
 * Returns where the port is reached, and notes the activity. Wakes the sandbox if its spec says so, but not for somebody whom only the
 * spec lets in. Throws what `authorizePort` throws, `sandbox_not_running` (paused, and not woken), `sandbox_busy` (on the way, for longer
 * than a minute), `port_closed` (the runtime gave the port no address), and what a resumption throws.
 */
export async function openPort(deps: SandboxesDeps, id: string, port: number, visitor: PortVisitor): Promise<OpenPort> {
  const { sandbox: found, isAnonymous } = await authorizePort(deps, id, port, visitor);
  const sandbox = found.status === 'RUNNING' ? found : await untilRunning(deps, found, isAnonymous);
  const url = sandbox.exposedUrls.find((one) => one.port === port)?.url;
  if (url === undefined) throw new Failure('port_closed', { id, port });
  const sessionKey = !isAnonymous && exposedPort(sandbox, port)?.wantsSessionKey === true ? sandbox.sessionApiKey : null;
  return { sandbox: await notePortActivity(deps, sandbox), isAnonymous, url, sessionKey };
}

/** Writes that the sandbox is active, unless that was written a short time ago. Returns the sandbox with the time that was written last. */
export async function notePortActivity({ store, clock }: SandboxesDeps, sandbox: Sandbox): Promise<Sandbox> {
  const now = clock.now();
  if (now - sandbox.lastActiveAt < touchIntervalMs(sandbox)) return sandbox;
  await store.touch(sandbox.id, now);
  return { ...sandbox, lastActiveAt: now };
}

/** The runtime may have given the address to another sandbox. So callers check after they connect, before they use the connection. */
export async function isPortAddress({ runtime }: SandboxesDeps, opened: OpenPort): Promise<boolean> {
  const { state, exposedUrls } = await runtime.inspect(opened.sandbox.instanceId);
  return state === 'running' && exposedUrls.some(({ url }) => url === opened.url);
}

async function untilRunning(deps: SandboxesDeps, { id, status, ...sandbox }: Sandbox, isAnonymous: boolean): Promise<Sandbox> {
  if (status === 'STARTING') throw new Failure('sandbox_busy', { id, status });
  const mayWake = !isAnonymous && isWokenByAccess(sandbox);
  // Somebody else resumes it. If it is paused again before it is seen to run, it stays so.
  if (status === 'RESUMING' && !mayWake) return await awaitResumed(deps, id);
  if (!mayWake || status === 'ERROR' || status === 'MISSING') throw new Failure('sandbox_not_running', { id, status });
  const pending = deps.pendingResumes.get(id);
  if (pending !== undefined) return await pending;
  const wake = resumeWithin(deps, id).finally(() => deps.pendingResumes.delete(id));
  deps.pendingResumes.set(id, wake);
  return await wake;
}

async function awaitResumed(deps: SandboxesDeps, id: string): Promise<Sandbox> {
  const sandbox = await awaitStatus(deps, null, id, 'RUNNING');
  const { status } = sandbox;
  if (status === 'RUNNING') return sandbox;
  throw new Failure(status === 'RESUMING' ? 'sandbox_busy' : 'sandbox_not_running', { id, status });
}

/** Resumes the sandbox, from a pause that is under way too. */
async function resumeWithin(deps: SandboxesDeps, id: string): Promise<Sandbox> {
  const until = deps.clock.now() + wakeWithinMs;
  for (let tries = 1; ; tries += 1) {
    const { status } = await getSandbox(deps.store, null, id);
    const sandbox = status === 'PAUSING' ? await awaitStatus(deps, null, id, 'PAUSED') : await resumeSandbox(deps, null, id);
    if (sandbox.status === 'RUNNING') return sandbox;
    if (tries === maxTries || deps.clock.now() >= until) throw new Failure('sandbox_busy', { id, status: sandbox.status });
  }
}
