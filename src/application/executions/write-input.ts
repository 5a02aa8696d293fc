import { Failure } from '../../domain/failure.ts';
import type { OwnerScope } from '../../domain/principal.ts';
import type { Clock } from '../../ports/clock.ts';
import { type ExecutionRecordsDeps, getSandboxExecution, withRecordFailures } from './execution-records.ts';

export interface WriteInputDeps extends ExecutionRecordsDeps {
  readonly clock: Clock;
}

/** How often the activity of a long input is written. */
const touchEveryMs = 30_000;

/**
 * Writes to the standard input of the execution, and closes it afterwards if `close` is true. Returns when all input is handed over, so it
 * waits while the command does not read. Counts as activity. Throws `sandbox_not_found`, `execution_not_found`, `sandbox_not_running`,
 * `input_closed`, `runtime_unavailable` or `runtime_timeout`.
 */
export async function writeInput(
  deps: WriteInputDeps, scope: OwnerScope, sandboxId: string, id: string, content: ReadableStream<Uint8Array>, close: boolean,
  signal: AbortSignal,
): Promise<void> {
  const { sandboxes, executions, clock } = deps;
  const { sandbox, execution } = await getSandboxExecution(deps, scope, sandboxId, id);
  if (execution.status !== 'running' || !execution.stdin) throw new Failure('input_closed', { id });
  let touchedAt = -Infinity;
  const touching = new TransformStream<Uint8Array, Uint8Array>({
    async transform(bytes, controller) {
      const now = clock.now();
      if (now - touchedAt >= touchEveryMs) {
        touchedAt = now;
        await sandboxes.touch(sandbox.id, now);
      }
      controller.enqueue(bytes);
    },
  });
  await withRecordFailures(sandbox, () => executions.write(sandbox.instanceId, id, content.pipeThrough(touching), close, signal));
}
