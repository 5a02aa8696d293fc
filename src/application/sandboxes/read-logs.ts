import { isFailureOf } from '../../domain/failure.ts';
import type { Caller } from '../../domain/principal.ts';
import type { LogRequest } from '../../ports/sandbox-runtime.ts';
import { redactorOf } from '../secrets.ts';
import type { SandboxUseCaseDeps } from './sandboxes.ts';
import { getSandbox } from './sandbox-records.ts';

/** Returns the logs without secrets. Does not wake the sandbox or count as activity. Throws `sandbox_not_found` and runtime failures. */
export async function readLogs(
  { store, runtime, secrets }: SandboxUseCaseDeps, caller: Caller | null, id: string, request: LogRequest, signal: AbortSignal,
): Promise<ReadableStream<Uint8Array>> {
  const sandbox = await getSandbox(store, caller, id);
  try {
    const log = await runtime.logs(sandbox.instanceId, request, signal);
    return log.pipeThrough(redactorOf(sandbox, secrets).redactStream({ isTail: request.tailBytes !== undefined }));
  } catch (error) {
    if (!isFailureOf(error, 'sandbox_not_found')) throw error;
    return ReadableStream.from<Uint8Array>([]);
  }
}
