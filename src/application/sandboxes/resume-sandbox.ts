import type { Caller } from '../../domain/principal.ts';
import { sandboxMovedEvents } from '../../domain/event.ts';
import { Failure } from '../../domain/failure.ts';
import { isQuarantined } from '../../domain/quarantine.ts';
import type { Reason } from '../../domain/reason.ts';
import { applyTransition } from '../../domain/sandbox-lifecycle.ts';
import type { Sandbox } from '../../domain/sandbox.ts';
import type { Limited } from '../../ports/idempotency-claim.ts';
import type { ReplaceOutcome } from '../../ports/sandbox-store.ts';
import { admit } from './admit-sandbox.ts';
import type { SandboxUseCaseDeps } from './sandboxes.ts';
import { reconcileUntil } from './reconcile-until.ts';
import { getSandbox, logStatusChange, originOf } from './sandbox-records.ts';

/**
 * Resumes a paused sandbox, or one in ERROR or MISSING whose files the runtime has, and returns it when it is ready. For a running
 * sandbox only notes the activity. `ownReason` is why Skep itself resumes it. Throws `sandbox_not_running` if the sandbox fails again,
 * `sandbox_not_found`, `sandbox_not_paused`, `sandbox_busy`, `sandbox_in_quarantine`, `sandbox_limit_reached`, `runtime_unavailable` or
 * `runtime_timeout`.
 */
export async function resumeSandbox(deps: SandboxUseCaseDeps, caller: Caller, id: string, ownReason?: Reason): Promise<Sandbox> {
  const { store, clock } = deps;
  for (;;) {
    const sandbox = await getSandbox(store, caller, id);
    if (isQuarantined(sandbox)) throw new Failure('sandbox_in_quarantine', { id });
    const { status } = sandbox;
    if (status === 'RUNNING') {
      await store.sandboxes.touch(id, clock.now());
      return await getSandbox(store, caller, id);
    }
    if (status === 'RESUMING') return await reconcileUntil(deps, caller, id, 'RUNNING');
    if (status === 'STARTING' || status === 'PAUSING') throw new Failure('sandbox_busy', { id, status });
    if (status !== 'PAUSED' && !(await hasFiles(deps, sandbox))) throw new Failure('sandbox_not_paused', { id, status });
    const outcome = await admit(deps, sandbox, () => writeResumption(deps, sandbox, caller, ownReason));
    if (outcome.kind === 'stale') continue;
    return await reconcileUntil(deps, caller, id, 'RUNNING');
  }
}

/** Returns true if the runtime has the files of the sandbox. A sandbox that never ran has no files. */
async function hasFiles({ runtime }: SandboxUseCaseDeps, { instanceId }: Sandbox): Promise<boolean> {
  const { state } = await runtime.inspect(instanceId);
  return state !== 'absent' && state !== 'created';
}

async function writeResumption(
  { store, limits, clock, logger }: SandboxUseCaseDeps, sandbox: Sandbox, caller: Caller, ownReason: Reason | undefined,
): Promise<ReplaceOutcome | Limited> {
  // A sandbox in ERROR or MISSING may have no processes. It is run again with its files.
  const pauseKind = sandbox.pauseKind ?? 'stop';
  const { actor, userId, reason } = originOf('resumed', sandbox, caller, ownReason);
  const next = applyTransition(sandbox, 'resume', actor, { now: clock.now(), reason, pauseKind });
  if (next === null) return { kind: 'stale' };
  const outcome = await store.sandboxes.admit(next, limits, sandboxMovedEvents(sandbox, next, actor, userId));
  if (outcome.kind === 'replaced') logStatusChange(logger, sandbox, next, actor, userId);
  return outcome;
}
