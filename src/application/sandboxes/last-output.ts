import { maskUrlPasswords } from '../../domain/credentials.ts';
import { outputTail } from '../../domain/output-tail.ts';
import { hasEndDetails } from '../../domain/reason.ts';
import type { ObservedSandbox, Sandbox } from '../../domain/sandbox.ts';
import type { Secrets } from '../../ports/secrets.ts';
import { redactorOf } from '../secrets.ts';
import { timeout } from '../timers.ts';
import type { SandboxDeps } from './sandboxes.ts';

/** How much of the output is kept. */
const endBytes = 2048;
/** Read in addition, so that the kept end does not begin inside a character. */
const longestCharacterBytes = 4;
const readWithinMs = 10_000;

/** Returns the changed record. If its processes failed, the reason gets the phase and the last output. */
export async function withLastOutput(
  deps: SandboxDeps & { readonly secrets: Secrets }, from: Sandbox, to: Sandbox, observed: ObservedSandbox | null,
): Promise<Sandbox> {
  const { statusReason: reason } = to;
  if (to.status !== 'ERROR' || from.status === 'ERROR' || reason === null || !hasEndDetails(reason)) return to;
  const phase = from.status === 'STARTING' ? 'starting' : from.status === 'RESUMING' ? 'resuming' : 'running';
  let output = '';
  try {
    if (observed !== null && observed.state !== 'absent') output = await endOfLog(deps, from.instanceId);
  } catch (error) {
    // The failure is recorded even without the output.
    deps.logger.warn({ sandbox: from.id, error }, 'the last output of a sandbox could not be read');
  }
  const shown = maskUrlPasswords(redactorOf(from, deps.secrets).redactTail(output));
  return { ...to, statusReason: { ...reason, phase, ...(shown !== '' && { output: shown }) } };
}

async function endOfLog({ runtime, clock }: SandboxDeps, instanceId: string): Promise<string> {
  using late = timeout(clock, readWithinMs);
  const chunks: Uint8Array[] = [];
  const log = await runtime.logs(instanceId, { tailBytes: endBytes + longestCharacterBytes }, late.signal);
  for await (const chunk of log) chunks.push(chunk);
  return outputTail(Buffer.concat(chunks), endBytes);
}
