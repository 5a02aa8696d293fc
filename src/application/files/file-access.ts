import type { OwnerScope } from '../../domain/principal.ts';
import { touchIntervalMs } from '../../domain/port-access.ts';
import type { Sandbox } from '../../domain/sandbox.ts';
import type { Clock } from '../../ports/clock.ts';
import type { SandboxRuntime } from '../../ports/sandbox-runtime.ts';
import type { SandboxStore } from '../../ports/sandbox-store.ts';
import { withRecordFailures } from '../executions/execution-records.ts';
import { getSandbox } from '../sandboxes/sandbox-records.ts';
import { interval } from '../timers.ts';

export interface FileDeps {
  readonly sandboxes: SandboxStore;
  readonly runtime: Pick<SandboxRuntime, 'files' | 'getFiles' | 'putFiles'>;
  readonly clock: Clock;
}

/** Calls `read` with the sandbox's id in the runtime. Does not wake the sandbox or count as activity. */
export async function readFiles<T>(
  { sandboxes }: FileDeps, scope: OwnerScope, id: string, read: (instanceId: string) => Promise<T>,
): Promise<T> {
  const sandbox = await getSandbox(sandboxes, scope, id);
  return await withRecordFailures(sandbox, () => read(sandbox.instanceId));
}

/** Calls `change` with the sandbox's id in the runtime. Does not wake the sandbox, but counts as activity until it is done. */
export async function changeFiles<T>(
  { sandboxes, clock }: FileDeps, scope: OwnerScope, id: string, change: (instanceId: string) => Promise<T>,
): Promise<T> {
  const sandbox = await getSandbox(sandboxes, scope, id);
  const touch = async ({ id }: Sandbox): Promise<void> => await sandboxes.touch(id, clock.now());
  await touch(sandbox);
  // If the store fails now, the next interval tries again.
  using _ = interval(clock, touchIntervalMs(sandbox), () => void touch(sandbox).catch(() => {}));
  return await withRecordFailures(sandbox, () => change(sandbox.instanceId));
}
