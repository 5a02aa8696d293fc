import { isFailure } from '../../domain/failure.ts';
import type { Sandbox, SandboxStatus } from '../../domain/sandbox.ts';
import type { SandboxDriverParts } from './step-context.ts';
import { recordMove } from './writes.ts';

/** Acts on the runtime; where that fails, and the sandbox was in the status, the move that it was in is taken back. */
export async function takingBack<T>(
  parts: SandboxDriverParts,
  status: SandboxStatus,
  latest: () => Sandbox,
  act: () => Promise<T>,
): Promise<T> {
  try {
    return await act();
  } catch (error) {
    const sandbox = latest();
    if (sandbox.status === status && isFailure(error) && error.code !== 'store_unavailable') {
      await recordMove(parts, sandbox, 'refused', { now: parts.clock.now(), detail: error.message }, 'runtime');
    }
    throw error;
  }
}
