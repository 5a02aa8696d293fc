import { Failure } from '../../domain/failure.ts';
import type { Sandbox } from '../../domain/sandbox.ts';
import { reconcileUntil } from './reconcile-until.ts';
import { resumeSandbox } from './resume-sandbox.ts';
import { getSandbox } from './sandbox-records.ts';
import type { SandboxUseCaseDeps } from './sandboxes.ts';

/** How long to wait for a sandbox that wakes, in milliseconds. */
const wakeWithinMs = 60_000;

/** How often to wait for a sandbox that is pausing or resuming. Each wait has its own limit too. */
const maxTries = 4;

/**
 * Returns the sandbox when it is RUNNING. If it is paused, resumes it if `mayResume`. The access to the sandbox must be checked before.
 * Throws the errors of `resumeSandbox`, `sandbox_not_running` (it does not run and is not resumed), and `sandbox_busy` (it starts, or its
 * resumption takes too long).
 */
export async function wakeSandbox(
  deps: SandboxUseCaseDeps, sandbox: Sandbox, { mayResume }: { readonly mayResume: boolean },
): Promise<Sandbox> {
  const { id, status } = sandbox;
  if (status === 'RUNNING') return sandbox;
  if (status === 'STARTING') throw new Failure('sandbox_busy', { id, status });
  // Somebody else resumes it. If it is paused again meanwhile, it stays paused.
  if (status === 'RESUMING' && !mayResume) return await awaitResumed(deps, id);
  if (!mayResume || status === 'ERROR' || status === 'MISSING') throw new Failure('sandbox_not_running', { id, status });
  const pending = deps.pendingResumes.get(id);
  if (pending !== undefined) return await pending;
  const resumption = resumeWithin(deps, id).finally(() => deps.pendingResumes.delete(id));
  deps.pendingResumes.set(id, resumption);
  return await resumption;
}

async function awaitResumed(deps: SandboxUseCaseDeps, id: string): Promise<Sandbox> {
  const sandbox = await reconcileUntil(deps, null, id, 'RUNNING');
  const { status } = sandbox;
  if (status === 'RUNNING') return sandbox;
  throw new Failure(status === 'RESUMING' ? 'sandbox_busy' : 'sandbox_not_running', { id, status });
}

/** Resumes the sandbox by the rule of its spec. If a pause is in progress, waits for its end first. */
async function resumeWithin(deps: SandboxUseCaseDeps, id: string): Promise<Sandbox> {
  const until = deps.clock.now() + wakeWithinMs;
  for (let tries = 1; ; tries += 1) {
    const { status, ownerId } = await getSandbox(deps.store, null, id);
    const sandbox = status === 'PAUSING'
      ? await reconcileUntil(deps, null, id, 'PAUSED')
      : await resumeSandbox(deps, ownerId, id, { code: 'woken_by_access' });
    if (sandbox.status === 'RUNNING') return sandbox;
    if (tries === maxTries || deps.clock.now() >= until) throw new Failure('sandbox_busy', { id, status: sandbox.status });
  }
}
