import type { EventActor } from './event.ts';
import { dueEndOfLife, dueIdleAction } from './idle-policy.ts';
import type { Reason } from './reason.ts';
import { isTooLate, type SandboxTransition } from './sandbox-lifecycle.ts';
import type { PauseKind, Sandbox, ObservedSandbox } from './sandbox.ts';

/** Who caused a change that no caller requested: a rule of Skep's, or what the runtime reports. */
type Cause = Extract<EventActor, 'skep' | 'runtime'>;

/**
 * What to do next for one sandbox. The first group writes the record; `take-start-slot` waits until the sandbox may be
 * started; the others act on the runtime. After each step the next one is decided again.
 */
export type SandboxStep =
  | { readonly kind: 'none' }
  | {
      readonly kind: 'record';
      readonly transition: SandboxTransition;
      readonly reason: Reason | null;
      readonly by: Cause;
      readonly pauseKind?: PauseKind;
    }
  | { readonly kind: 'stop-frozen'; readonly reason: Reason; readonly by: Cause }
  | { readonly kind: 'delete'; readonly reason: Reason }
  | { readonly kind: 'mark-removed' }
  | { readonly kind: 'relocate' }
  | { readonly kind: 'requeue'; readonly reason: Reason }
  /** The time limit of the start begins, although there is no start slot yet. */
  | { readonly kind: 'begin' }
  | { readonly kind: 'take-start-slot' }
  | { readonly kind: 'launch' }
  | { readonly kind: 'await-ready' }
  | { readonly kind: 'freeze' }
  | { readonly kind: 'stop' }
  | { readonly kind: 'resume' }
  | { readonly kind: 'remove' };

const none: SandboxStep = { kind: 'none' };
const vanished: Reason = { code: 'vanished' };

/**
 * Decides the next step from the record and what the runtime reports. Pure and total. `rerun`: it was run again just now,
 * so a stopped one has ended again.
 */
export function nextSandboxStep(sandbox: Sandbox, observed: ObservedSandbox, now: number, rerun = false): SandboxStep {
  if (sandbox.deletedAt !== null) {
    if (observed.state !== 'absent') return { kind: 'remove' };
    return sandbox.removedAt === null ? { kind: 'mark-removed' } : none;
  }
  const end = dueEndOfLife(sandbox, now);
  if (end !== null) return { kind: 'delete', reason: end.reason };
  switch (sandbox.status) {
    case 'STARTING':
      return whileStarting(sandbox, observed, now);
    case 'RUNNING':
      return whileRunning(sandbox, observed, now);
    case 'PAUSING':
      return whilePausing(sandbox, observed);
    case 'PAUSED':
      return whilePaused(sandbox, observed, now);
    case 'RESUMING':
      return whileResuming(sandbox, observed, now, rerun);
    case 'ERROR':
    case 'MISSING':
      // Nothing of it may run any more. The files stay for whoever looks into the error.
      return observed.state === 'running' || observed.state === 'frozen' ? { kind: 'stop' } : none;
  }
}

/** The step that is safe in every state and returns the new state, so no inspect is needed first. Null if there is none. */
export function stepWithoutInspect(sandbox: Sandbox): SandboxStep | null {
  if (sandbox.deletedAt !== null || sandbox.status !== 'PAUSING') return null;
  return { kind: sandbox.pauseKind ?? 'freeze' };
}

/** Decides the next step if the runtime does not answer: only what depends on the time alone. */
export function stepWithoutRuntime(sandbox: Sandbox, now: number): SandboxStep {
  if (sandbox.deletedAt !== null) return none;
  const end = dueEndOfLife(sandbox, now);
  if (end !== null) return { kind: 'delete', reason: end.reason };
  const { status } = sandbox;
  if (status !== 'STARTING' && status !== 'RESUMING') return none;
  if (sandbox.startingSince === null) return { kind: 'begin' };
  if (!isTooLate(sandbox, now)) return none;
  const reason = notReadyInTime(sandbox, { code: 'runtime_silent' });
  return { kind: 'record', transition: status === 'STARTING' ? 'expired' : 'failed', reason, by: 'skep' };
}

function whileStarting(sandbox: Sandbox, observed: ObservedSandbox, now: number): SandboxStep {
  if (observed.state === 'stopped' && !observed.endedFromOutside) {
    return failed(observed.reason ?? { code: 'ended_while_starting' }, 'runtime');
  }
  if (isTooLate(sandbox, now)) {
    return { kind: 'record', transition: 'expired', reason: notReadyInTime(sandbox, sandbox.statusReason), by: 'skep' };
  }
  if (sandbox.startingSince === null) return { kind: 'take-start-slot' };
  switch (observed.state) {
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

function whileRunning(sandbox: Sandbox, observed: ObservedSandbox, now: number): SandboxStep {
  switch (observed.state) {
    case 'running': {
      const due = dueIdleAction(sandbox, now);
      if (due !== null) return { kind: 'record', transition: 'pause', reason: due.reason, by: 'skep', pauseKind: 'freeze' };
      return hasOtherUrls(sandbox, observed) ? { kind: 'relocate' } : none;
    }
    case 'frozen':
      return { kind: 'record', transition: 'pause', reason: { code: 'frozen_outside' }, by: 'runtime', pauseKind: 'freeze' };
    case 'created':
    case 'stopped':
      return endedWhileRunning(observed);
    case 'absent':
      return { kind: 'record', transition: 'vanished', reason: vanished, by: 'runtime' };
  }
}

function endedWhileRunning({ reason, endedFromOutside }: ObservedSandbox): SandboxStep {
  if (!endedFromOutside) return { kind: 'record', transition: 'crashed', reason: reason ?? { code: 'processes_ended' }, by: 'runtime' };
  return { kind: 'record', transition: 'pause', reason: { code: 'ended_outside', cause: reason }, by: 'runtime', pauseKind: 'stop' };
}

function whilePausing(sandbox: Sandbox, observed: ObservedSandbox): SandboxStep {
  switch (observed.state) {
    case 'running':
      return { kind: sandbox.pauseKind ?? 'freeze' };
    case 'frozen':
      return sandbox.pauseKind === 'stop' ? { kind: 'stop' } : paused(sandbox.statusReason, 'freeze', 'skep');
    case 'created':
    case 'stopped':
      return sandbox.pauseKind === 'stop'
        ? paused(sandbox.statusReason ?? observed.reason, 'stop', 'skep')
        : paused(endedWhileFrozen(observed), 'stop', 'runtime');
    case 'absent':
      return { kind: 'record', transition: 'refused', reason: vanished, by: 'runtime' };
  }
}

function whilePaused(sandbox: Sandbox, observed: ObservedSandbox, now: number): SandboxStep {
  switch (observed.state) {
    case 'running':
      // A paused sandbox does not count against the limits, so it may not run: a resumption whose answer was lost, or one
      // from outside, is undone.
      return { kind: sandbox.pauseKind ?? 'freeze' };
    case 'absent':
      return { kind: 'record', transition: 'vanished', reason: vanished, by: 'runtime' };
    case 'created':
    case 'stopped':
      if (sandbox.pauseKind === 'freeze') return { kind: 'stop-frozen', reason: endedWhileFrozen(observed), by: 'runtime' };
      break;
    case 'frozen':
      if (sandbox.pauseKind === 'stop') return { kind: 'stop' };
  }
  const due = dueIdleAction(sandbox, now);
  if (due === null) return none;
  return due.tier === 'delete' ? { kind: 'delete', reason: due.reason } : { kind: 'stop-frozen', reason: due.reason, by: 'skep' };
}

function whileResuming(sandbox: Sandbox, observed: ObservedSandbox, now: number, rerun: boolean): SandboxStep {
  if (observed.state === 'absent') return failed(vanished, 'runtime');
  // A frozen sandbox reports no progress while it is resumed.
  if (isTooLate(sandbox, now)) return failed(notReadyInTime(sandbox, sandbox.pauseKind === 'freeze' ? null : sandbox.statusReason), 'skep');
  if (sandbox.startingSince === null) return { kind: 'take-start-slot' };
  if (observed.state === 'running') return sandbox.pauseKind === 'freeze' ? thawed : { kind: 'await-ready' };
  if (observed.state === 'frozen') return { kind: 'resume' };
  if (rerun && !observed.endedFromOutside) return failed(observed.reason ?? { code: 'ended_while_resuming' }, 'runtime');
  return sandbox.pauseKind === 'freeze' ? { kind: 'requeue', reason: endedWhileFrozen(observed) } : { kind: 'resume' };
}

/** A sandbox that continues after a freeze was ready before, so no probe is needed. */
const thawed: SandboxStep = { kind: 'record', transition: 'ready', reason: { code: 'processes_continued' }, by: 'runtime' };

function paused(reason: Reason | null, pauseKind: PauseKind, by: Cause): SandboxStep {
  return { kind: 'record', transition: 'paused', reason, by, pauseKind };
}

function failed(reason: Reason, by: Cause): SandboxStep {
  return { kind: 'record', transition: 'failed', reason, by };
}

/** Returns true if the ports of a running sandbox have other URLs than the record says. A report that lacks ports decides nothing. */
function hasOtherUrls({ spec, exposedUrls }: Sandbox, observed: ObservedSandbox): boolean {
  if (observed.exposedUrls.length !== spec.ports.length) return false;
  return !observed.exposedUrls.every(({ port, url }) => exposedUrls.some((written) => written.port === port && written.url === url));
}

function notReadyInTime({ spec }: Sandbox, last: Reason | null): Reason {
  return { code: 'not_ready_in_time', withinMs: spec.ready.withinMs, last };
}

function endedWhileFrozen({ reason }: ObservedSandbox): Reason {
  return { code: 'ended_while_frozen', cause: reason };
}
