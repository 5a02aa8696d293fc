import { type Caller, userIdOf } from '../../domain/principal.ts';
import { Failure } from '../../domain/failure.ts';
import { longestLifeMs, withMaxLife } from '../../domain/idle-policy.ts';
import { applyTransition, nextVersion, reasonOfRequest, stopFrozenByUser } from '../../domain/sandbox-lifecycle.ts';
import type { PauseKind, Sandbox } from '../../domain/sandbox.ts';
import { waitAtMost } from '../timers.ts';
import type { SandboxUseCaseDeps } from './sandboxes.ts';
import { reconcileUntil } from './reconcile-until.ts';
import { getSandbox, writeSandbox } from './sandbox-records.ts';

export interface PauseOptions {
  /**
   * Removes the end that a timeout has set, in the same write that begins the pause, so a pause that takes long loses no sandbox. It is
   * deleted when the maximum life of its spec is over, and not earlier than before.
   */
  readonly removesTimeout?: boolean;
}

/**
 * Pauses a running sandbox and returns it when it is PAUSED. Returns a paused sandbox unchanged, but stops one that is frozen or being
 * frozen if `asked` is `stop`. Without `asked`, freezes the sandbox if the runtime can, and stops it otherwise. Throws
 * `sandbox_not_found`, `sandbox_not_running`, `sandbox_busy`, `freeze_unsupported`, `runtime_unavailable` or `runtime_timeout`.
 */
export async function pauseSandbox(
  deps: SandboxUseCaseDeps, caller: Caller, id: string, asked?: PauseKind, { removesTimeout = false }: PauseOptions = {},
): Promise<Sandbox> {
  const userId = userIdOf(caller);
  const { name: runtime, capabilities: { freeze: canFreeze } } = deps.runtime;
  for (;;) {
    const found = await getSandbox(deps.store, caller, id);
    const sandbox = removesTimeout ? withoutTimeout(deps, found) : found;
    const { status } = sandbox;
    const now = deps.clock.now();
    if (status === 'STARTING' || status === 'RESUMING') throw new Failure('sandbox_busy', { id, status });
    if (sandbox !== found && (status === 'PAUSED' || status === 'PAUSING')) {
      await deps.store.sandboxes.replace(nextVersion(sandbox, now, {}));
      continue;
    }
    if (asked === 'stop' && sandbox.pauseKind === 'freeze' && (status === 'PAUSED' || status === 'PAUSING')) {
      if (!(await writeSandbox(deps, sandbox, stopFrozenByUser(sandbox, userId, now), 'user', userId))) continue;
      if (status === 'PAUSED') return await awaitStop(deps, caller, id);
    } else if (status === 'PAUSED') {
      return sandbox;
    } else if (status !== 'PAUSING') {
      const pauseKind = asked ?? (canFreeze ? 'freeze' : 'stop');
      if (pauseKind === 'freeze' && !canFreeze) throw new Failure('freeze_unsupported', { runtime });
      const reason = reasonOfRequest('paused', sandbox, userId);
      const next = applyTransition(sandbox, 'pause', 'user', { now, reason, pauseKind });
      if (next === null) throw new Failure('sandbox_not_running', { id, status });
      if (!(await writeSandbox(deps, sandbox, next, 'user', userId))) continue;
    }
    const paused = await reconcileUntil(deps, caller, id, 'PAUSED');
    // If the runtime refused to stop a sandbox that it had frozen, it is PAUSED, but not as asked.
    if (asked !== 'stop' || paused.status !== 'PAUSED' || paused.pauseKind !== 'freeze') return paused;
  }
}

function withoutTimeout({ specs }: SandboxUseCaseDeps, sandbox: Sandbox): Sandbox {
  const { id, rest } = sandbox.spec;
  // A timeout that pauses ends with the resumption. The maximum life is that of the spec.
  if (rest.timeoutPause !== undefined) return sandbox;
  const maxLifeMs = longestLifeMs(sandbox, specs.find(id)?.rest.maxLifeMs ?? null);
  return maxLifeMs === rest.maxLifeMs ? sandbox : withMaxLife(sandbox, maxLifeMs);
}

/** Waits until a frozen sandbox is stopped. Its record is PAUSED before and after, so only a failure shows that the stop failed. */
async function awaitStop(
  { store, clock, reconciler, answerWithinMs }: SandboxUseCaseDeps, caller: Caller, id: string,
): Promise<Sandbox> {
  const reconciled = await waitAtMost(clock, answerWithinMs, reconciler.reconcile(id));
  if (reconciled?.failure != null) throw reconciled.failure;
  return await getSandbox(store, caller, id);
}
