import type { OwnerScope } from '../../domain/principal.ts';
import type { SandboxUsage } from '../../ports/sandbox-runtime.ts';
import type { SandboxesDeps } from './sandbox-deps.ts';
import { getSandbox } from './sandbox-records.ts';

/** Returns what the sandbox takes now. Throws `sandbox_not_found`, `runtime_unavailable` or `runtime_timeout`. */
export async function sandboxUsage({ store, runtime }: SandboxesDeps, scope: OwnerScope, id: string): Promise<SandboxUsage> {
  const { instanceId } = await getSandbox(store, scope, id);
  return await runtime.usage(instanceId);
}
