import type { OwnerScope } from '../../domain/principal.ts';
import type { SandboxRuntime, SandboxUsage } from '../../ports/sandbox-runtime.ts';
import type { SandboxStore } from '../../ports/sandbox-store.ts';
import { getSandbox } from './sandbox-records.ts';

export interface GetSandboxUsageDeps {
  readonly store: SandboxStore;
  readonly runtime: Pick<SandboxRuntime, 'usage'>;
}

/** Returns what the sandbox takes now. Throws `sandbox_not_found`, `runtime_unavailable` or `runtime_timeout`. */
export async function getSandboxUsage({ store, runtime }: GetSandboxUsageDeps, scope: OwnerScope, id: string): Promise<SandboxUsage> {
  const { instanceId } = await getSandbox(store, scope, id);
  return await runtime.usage(instanceId);
}
