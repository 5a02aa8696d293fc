import { Failure, isFailureOf } from '../../domain/failure.ts';
import { isInScope, type Principal, scopeOf } from '../../domain/principal.ts';
import { exposedPort, isSameSecret } from '../../domain/sandbox-access.ts';
import { isPooled, type Sandbox } from '../../domain/sandbox.ts';
import type { SandboxStore } from '../../ports/sandbox-store.ts';

/** Who asks for a port of a sandbox. */
export interface PortVisitor {
  /** The key that it sent, of whatever kind; null if there is none. */
  readonly key: string | null;
  /**
   * Returns who it is by what it sent besides the sandbox's own key. Throws `unauthorized` if that is nothing, or not good. A bad
   * credential counts as an attempt only if one is needed: programs in a sandbox have credentials of their own.
   */
  identify(isNeeded: boolean): Promise<Principal>;
}

export interface PortAccess {
  readonly sandbox: Sandbox;
  /** True if nothing but the spec lets the visitor in. It wakes nothing. */
  readonly isAnonymous: boolean;
}

export interface AuthorizePortDeps {
  readonly store: Pick<SandboxStore, 'find'>;
}

/**
 * Checks whether the visitor may reach the port: by the sandbox's own key, as somebody who may change the sandbox, or because the spec
 * makes the port public. Whoever may not learns nothing about the sandbox. Throws `unauthorized`, `forbidden` (a key that may only read),
 * `sandbox_not_found`, `port_not_exposed`, and what `identify` throws.
 */
export async function authorizePort(deps: AuthorizePortDeps, id: string, port: number, visitor: PortVisitor): Promise<PortAccess> {
  const found = await deps.store.find(id);
  const sandbox = found === null || found.deletedAt !== null || isPooled(found) ? null : found;
  if (sandbox !== null && visitor.key !== null && isSameSecret(visitor.key, sandbox.sessionApiKey)) return exposed(sandbox, port, false);
  const isPublic = sandbox !== null && exposedPort(sandbox, port)?.public === true;
  try {
    const principal = await visitor.identify(!isPublic);
    if (sandbox === null || !isInScope(sandbox.ownerId, scopeOf(principal))) throw new Failure('sandbox_not_found', { id });
    if (principal.access === 'read') throw new Failure('forbidden', { action: 'reach the ports of a sandbox' });
    return exposed(sandbox, port, false);
  } catch (error) {
    const isRefused = (['unauthorized', 'forbidden', 'sandbox_not_found'] as const).some((code) => isFailureOf(error, code));
    if (sandbox !== null && isPublic && isRefused) return exposed(sandbox, port, true);
    throw error;
  }
}

function exposed(sandbox: Sandbox, port: number, isAnonymous: boolean): PortAccess {
  if (exposedPort(sandbox, port) !== null) return { sandbox, isAnonymous };
  throw new Failure('port_not_exposed', { id: sandbox.id, port, exposed: sandbox.spec.ports.map((one) => one.port) });
}
