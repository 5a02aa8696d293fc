import { Failure } from '../../domain/failure.ts';
import type { OwnerScope } from '../../domain/principal.ts';
import type { OutputStream } from '../../ports/sandbox-executions.ts';
import { type ExecutionRecordsDeps, getSandboxExecution, withRecordFailures } from './execution-records.ts';

export interface ReadOutputRequest {
  readonly stream: OutputStream;
  /** The offset to begin at. Null: the oldest kept byte, but for a terminal at most its last 64 KiB. */
  readonly after: number | null;
  /** If true, the stream continues until the command ends. */
  readonly follow: boolean;
}

export interface Output {
  /** The offset of the first byte. */
  readonly from: number;
  readonly bytes: ReadableStream<Uint8Array>;
}

/** How much past output of a terminal is returned if no offset is given, in bytes. */
const screenfulBytes = 64 * 1024;

/**
 * Returns the output of the execution. Does not wake the sandbox. Throws `sandbox_not_found`, `execution_not_found`, `output_dropped`,
 * `runtime_unavailable` or `runtime_timeout`; the stream fails with `output_dropped` if its reader is too slow.
 */
export async function readOutput(
  deps: ExecutionRecordsDeps, scope: OwnerScope, sandboxId: string, id: string, { stream, after, follow }: ReadOutputRequest,
  signal: AbortSignal,
): Promise<Output> {
  const { executions } = deps;
  const { sandbox, execution } = await getSandboxExecution(deps, scope, sandboxId, id);
  const { instanceId } = sandbox;
  return await withRecordFailures(sandbox, async () => {
    const { oldest, end } = (await executions.state(instanceId, id))[stream];
    const from = after ?? Math.max(oldest, execution.tty ? end - screenfulBytes : 0);
    if (from < oldest) throw new Failure('output_dropped', { oldest });
    return { from, bytes: await executions.output(instanceId, id, { stream, after: from, follow }, signal) };
  });
}
