import type { EventActor } from './event.ts';
import { dueEndOfLife, dueIdleAction } from './idle-policy.ts';
import { isTooLate, type SandboxTransition } from './sandbox-lifecycle.ts';
import type { PauseKind, Sandbox, ObservedSandbox } from './sandbox.ts';

/** Who caused a change that nobody asked for: a rule of Skep's, or what the runtime found. */
type Cause = Extract<EventActor, 'skep' | 'runtime'>;

/**
 * What to do next for one sandbox, given what is written and what is found. The first group writes; `take-turn` waits
 * until the sandbox may be run; the others act on the runtime. After each, the same question is asked again.
 */
export type SandboxStep =
  | { readonly kind: 'none' }
  | { readonly kind: 'record'; readonly event: SandboxTransition; readonly detail: string | null; readonly by: Cause; readonly pauseKind?: PauseKind }
  | { readonly kind: 'deepen'; readonly detail: string; readonly by: Cause }
  | { readonly kind: 'delete'; readonly detail: string }
  | { readonly kind: 'forget' }
  | { readonly kind: 'relocate' }
  | { readonly kind: 'requeue'; readonly detail: string }
  /** The time that its start may take begins to count, though no turn has come. */
  | { readonly kind: 'begin' }
  | { readonly kind: 'take-turn' }
  | { readonly kind: 'launch' }
  | { readonly kind: 'await-ready' }
  | { readonly kind: 'freeze' }
  | { readonly kind: 'stop' }
  | { readonly kind: 'resume' }
  | { readonly kind: 'remove' };

const none: SandboxStep = { kind: 'none' };
const gone = 'the runtime no longer has it';

/**
 * Decides the next step. Pure and total: the same arguments always give the same step. `rerun`: was it run again just
 * now, so that what is stopped ended anew?
 */
export function nextSandboxStep(sandbox: Sandbox, fact: ObservedSandbox, now: number, rerun = false): SandboxStep {
  if (sandbox.deletedAt !== null) {
    if (sandbox.removedAt !== null && fact.state === 'absent') return none;
    return fact.state === 'absent' ? { kind: 'forget' } : { kind: 'remove' };
  }
  const life = dueEndOfLife(sandbox, now);
  if (life !== null) return { kind: 'delete', detail: life.detail };
  switch (sandbox.status) {
    case 'STARTING':
      return whileStarting(sandbox, fact, now);
    case 'RUNNING':
      return whileRunning(sandbox, fact, now);
    case 'PAUSING':
      return whilePausing(sandbox, fact);
    case 'PAUSED':
      return whilePaused(sandbox, fact, now);
    case 'RESUMING':
      return whileResuming(sandbox, fact, now, rerun);
    case 'ERROR':
    case 'MISSING':
      // A record that has given up owns no running process; the files stay for whoever looks into it.
      return fact.state === 'running' || fact.state === 'frozen' ? { kind: 'stop' } : none;
  }
}

/** What can be done before the fact is known, since it may be done whatever holds and tells what holds then; null where nothing can. */
export function stepWithoutInspect(sandbox: Sandbox): SandboxStep | null {
  if (sandbox.deletedAt !== null || sandbox.status !== 'PAUSING') return null;
  return { kind: sandbox.pauseKind ?? 'freeze' };
}

/** The same where the runtime does not tell the fact: only what depends on the time alone can be decided then. */
export function stepWithoutRuntime(sandbox: Sandbox, now: number): SandboxStep {
  if (sandbox.deletedAt !== null) return none;
  const life = dueEndOfLife(sandbox, now);
  if (life !== null) return { kind: 'delete', detail: life.detail };
  const { status } = sandbox;
  if (status !== 'STARTING' && status !== 'RESUMING') return none;
  if (sandbox.startingSince === null) return { kind: 'begin' };
  if (!isTooLate(sandbox, now)) return none;
  const detail = tooLate(sandbox, 'its runtime does not answer');
  return { kind: 'record', event: status === 'STARTING' ? 'expired' : 'failed', detail, by: 'skep' };
}

function whileStarting(sandbox: Sandbox, fact: ObservedSandbox, now: number): SandboxStep {
  if (fact.state === 'stopped' && !fact.endedFromOutside) {
    return failed(fact.detail ?? 'it ended while it started', 'runtime');
  }
  if (isTooLate(sandbox, now)) return { kind: 'record', event: 'expired', detail: tooLate(sandbox, sandbox.statusDetail), by: 'skep' };
  if (sandbox.startingSince === null) return { kind: 'take-turn' };
  switch (fact.state) {
    case 'absent':
    case 'created':
      return { kind: 'launch' };
    case 'frozen':
    case 'stopped':
      return { kind: 'resume' };
    case 'running':
      return { kind: 'await-ready' };
  }
}

function whileRunning(sandbox: Sandbox, fact: ObservedSandbox, now: number): SandboxStep {
  switch (fact.state) {
    case 'running': {
      const due = dueIdleAction(sandbox, now);
      if (due !== null) return { kind: 'record', event: 'pause', detail: due.detail, by: 'skep', pauseKind: 'freeze' };
      return isElsewhere(sandbox, fact) ? { kind: 'relocate' } : none;
    }
    case 'frozen':
      return { kind: 'record', event: 'pause', detail: 'it was frozen from outside', by: 'runtime', pauseKind: 'freeze' };
    case 'created':
    case 'stopped':
      return fact.endedFromOutside
        ? { kind: 'record', event: 'pause', detail: endedFromOutside(fact), by: 'runtime', pauseKind: 'stop' }
        : { kind: 'record', event: 'crashed', detail: fact.detail ?? 'its processes ended', by: 'runtime' };
    case 'absent':
      return { kind: 'record', event: 'vanished', detail: gone, by: 'runtime' };
  }
}

function whilePausing(sandbox: Sandbox, fact: ObservedSandbox): SandboxStep {
  switch (fact.state) {
    case 'running':
      return { kind: sandbox.pauseKind ?? 'freeze' };
    case 'frozen':
      return sandbox.pauseKind === 'stop' ? { kind: 'stop' } : paused(sandbox.statusDetail, 'freeze', 'skep');
    case 'created':
    case 'stopped':
      return sandbox.pauseKind === 'stop'
        ? paused(sandbox.statusDetail ?? fact.detail, 'stop', 'skep')
        : paused(endedWhileFrozen(fact), 'stop', 'runtime');
    case 'absent':
      return { kind: 'record', event: 'refused', detail: gone, by: 'runtime' };
  }
}

function whilePaused(sandbox: Sandbox, fact: ObservedSandbox, now: number): SandboxStep {
  switch (fact.state) {
    case 'running':
      // What is paused does not count against the limits, so it may not run: a resumption whose answer was lost, or one
      // from outside, is undone.
      return { kind: sandbox.pauseKind ?? 'freeze' };
    case 'absent':
      return { kind: 'record', event: 'vanished', detail: gone, by: 'runtime' };
    case 'created':
    case 'stopped':
      if (sandbox.pauseKind === 'freeze') return { kind: 'deepen', detail: endedWhileFrozen(fact), by: 'runtime' };
      break;
    case 'frozen':
      if (sandbox.pauseKind === 'stop') return { kind: 'stop' };
  }
  const due = dueIdleAction(sandbox, now);
  if (due === null) return none;
  return due.tier === 'delete' ? { kind: 'delete', detail: due.detail } : { kind: 'deepen', detail: due.detail, by: 'skep' };
}

function whileResuming(sandbox: Sandbox, fact: ObservedSandbox, now: number, rerun: boolean): SandboxStep {
  if (fact.state === 'absent') return failed(gone, 'runtime');
  // A frozen one is let go on without a wait that would be told of.
  if (isTooLate(sandbox, now)) return failed(tooLate(sandbox, sandbox.pauseKind === 'freeze' ? null : sandbox.statusDetail), 'skep');
  if (sandbox.startingSince === null) return { kind: 'take-turn' };
  if (fact.state === 'running') return sandbox.pauseKind === 'freeze' ? thawed : { kind: 'await-ready' };
  if (fact.state === 'frozen') return { kind: 'resume' };
  if (rerun && !fact.endedFromOutside) return failed(fact.detail ?? 'it ended while it resumed', 'runtime');
  return sandbox.pauseKind === 'freeze' ? { kind: 'requeue', detail: endedWhileFrozen(fact) } : { kind: 'resume' };
}

/** What goes on where it was, was ready when it was frozen. */
const thawed: SandboxStep = { kind: 'record', event: 'ready', detail: 'resumed: its processes went on where they were', by: 'runtime' };

function paused(detail: string | null, pauseKind: PauseKind, by: Cause): SandboxStep {
  return { kind: 'record', event: 'paused', detail, by, pauseKind };
}

function failed(detail: string, by: Cause): SandboxStep {
  return { kind: 'record', event: 'failed', detail, by };
}

/** Is a running sandbox reached elsewhere than is written? A fact that lacks some of the ports does not tell. */
function isElsewhere({ spec, exposedUrls }: Sandbox, fact: ObservedSandbox): boolean {
  if (fact.exposedUrls.length !== spec.ports.length) return false;
  return !fact.exposedUrls.every(({ port, url }) => exposedUrls.some((known) => known.port === port && known.url === url));
}

/** `seen` is what went on last; null where nothing was told. */
function tooLate({ spec }: Sandbox, seen: string | null): string {
  return `it was not ready within ${spec.ready.withinMs / 1000} s${seen === null ? '' : `; ${seen}`}`;
}

function endedFromOutside({ detail }: ObservedSandbox): string {
  return `ended from outside${detail === null ? '' : ` (${detail})`}; the files are kept, resume it to go on`;
}

function endedWhileFrozen({ detail }: ObservedSandbox): string {
  return `its processes ended while it was frozen${detail === null ? '' : ` (${detail})`}; the files are kept`;
}
