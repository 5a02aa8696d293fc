import { endOfText } from '../../domain/end-of-text.ts';
import { isFailureOf } from '../../domain/failure.ts';
import type { OwnerScope } from '../../domain/principal.ts';
import type { LogRequest } from '../../ports/sandbox-runtime.ts';
import { redactorOf } from '../agents/secret-redactor.ts';
import { timeout } from '../timers.ts';
import type { SandboxDeps, SandboxesDeps } from './sandboxes.ts';
import { getSandbox } from './sandbox-records.ts';

/** Without the values of secrets. Wakes nothing, and is no activity. Throws `sandbox_not_found` and failures of the runtime. */
export async function readLogs(
  { store, runtime, secrets }: SandboxesDeps, scope: OwnerScope, id: string, request: LogRequest, signal: AbortSignal,
): Promise<ReadableStream<Uint8Array>> {
  const sandbox = await getSandbox(store, scope, id);
  try {
    const log = await runtime.logs(sandbox.instanceId, request, signal);
    return log.pipeThrough(redactorOf(sandbox, secrets).bytes({ isTail: request.tailBytes !== undefined }));
  } catch (error) {
    if (!isFailureOf(error, 'sandbox_not_found')) throw error;
    return ReadableStream.from<Uint8Array>([]);
  }
}

const endBytes = 2048;
/** So much more is read that the end does not begin within a character. */
const longestCharacterBytes = 4;
const endWithinMs = 10_000;

/** Returns the end of a sandbox's log as text, at most 2 KiB of it, with its secrets. Fails if that takes more than 10 seconds. */
export async function endOfLog({ runtime, clock }: SandboxDeps, instanceId: string): Promise<string> {
  using late = timeout(clock, endWithinMs);
  const chunks: Uint8Array[] = [];
  const log = await runtime.logs(instanceId, { tailBytes: endBytes + longestCharacterBytes }, late.signal);
  for await (const chunk of log) chunks.push(chunk);
  return endOfText(Buffer.concat(chunks), endBytes);
}
