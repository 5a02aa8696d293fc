import { movedEvents } from '../../domain/event.ts';
import { Failure } from '../../domain/failure.ts';
import { move } from '../../domain/sandbox-lifecycle.ts';
import type { Sandbox } from '../../domain/sandbox.ts';
import type { ReplaceOutcome } from '../../ports/sandbox-store.ts';
import { type AdmissionDeps, admit, type Limited, limitFailure } from './make-room.ts';
import { awaitStatus, type AwaitStatusDeps } from './sandbox-reconciler.ts';
import { getSandbox, logMove } from './sandbox-records.ts';

export type ResumeSandboxDeps = AwaitStatusDeps & AdmissionDeps;

/**
 * Resumes the owner's paused sandbox and returns it when it is ready. For a running one it only notes the activity. Throws
 * `sandbox_not_found`, `sandbox_not_paused`, `sandbox_busy`, `sandbox_limit_reached`, `runtime_unavailable` or
 * `runtime_timeout`.
 */
export async function resumeSandbox(deps: ResumeSandboxDeps, ownerId: string, id: string): Promise<Sandbox> {
  const { store, clock } = deps;
  for (;;) {
    const sandbox = await getSandbox(store, ownerId, id);
    const { status } = sandbox;
    if (status === 'RUNNING') {
      await store.touch(id, clock.now());
      return await getSandbox(store, ownerId, id);
    }
    if (status === 'RESUMING') return await awaitStatus(deps, ownerId, id, 'RUNNING');
    if (status === 'STARTING' || status === 'PAUSING') throw new Failure('sandbox_busy', { id, status });
    if (status !== 'PAUSED') throw new Failure('sandbox_not_paused', { id, status });
    const outcome = await admit(deps, sandbox, () => writeResumption(deps, sandbox));
    if (outcome.kind === 'limit') throw limitFailure(outcome.reached);
    if (outcome.kind === 'stale') continue;
    return await awaitStatus(deps, ownerId, id, 'RUNNING');
  }
}

async function writeResumption({ store, limits, clock, logger }: ResumeSandboxDeps, sandbox: Sandbox): Promise<ReplaceOutcome | Limited> {
  const next = move(sandbox, 'resume', { now: clock.now(), reason: { code: 'resumed_by_owner' } });
  if (next === null) return { kind: 'stale' };
  const outcome = await store.admit(next, limits, movedEvents(sandbox, next, 'user'));
  if (outcome.kind === 'replaced') logMove(logger, sandbox, next, 'user');
  return outcome;
}
