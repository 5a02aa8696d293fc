import { Failure } from '../../domain/failure.ts';
import type { OwnerScope } from '../../domain/principal.ts';
import { exposedPort } from '../../domain/sandbox-access.ts';
import type { Clock } from '../../ports/clock.ts';
import type { SandboxStore } from '../../ports/sandbox-store.ts';
import { getSandbox } from './sandbox-records.ts';

/** What a link gives access to, until when, in milliseconds since the epoch. */
export interface PortGrant {
  readonly sandboxId: string;
  readonly port: number;
  readonly expiresAt: number;
}

/** Returns what a link to the port gives access to. It wakes nothing. Throws `sandbox_not_found` or `port_not_exposed`. */
export async function createPortLink(
  deps: { readonly store: SandboxStore; readonly clock: Clock }, scope: OwnerScope, id: string, port: number, expiresInMs: number,
): Promise<PortGrant> {
  const sandbox = await getSandbox(deps.store, scope, id);
  if (exposedPort(sandbox, port) !== null) return { sandboxId: id, port, expiresAt: deps.clock.now() + expiresInMs };
  throw new Failure('port_not_exposed', { id, port, exposed: sandbox.spec.ports.map((one) => one.port) });
}
