import type { EventActor } from './event.ts';
import { dueEndOfLife, dueIdleAction, dueTimeoutPause } from './idle-policy.ts';
import { isQuarantined } from './quarantine.ts';
import type { Reason } from './reason.ts';
import {
  applyTransition, beginStartTimeLimit, clearStillRunning, markDeleted, mayTryAgain, nextVersion, readyDeadline, type SandboxTransition,
  stopFrozen, type TransitionChange,
} from './sandbox-lifecycle.ts';
import type { ObservedSandbox, PauseKind, Sandbox } from './sandbox.ts';

/** Who caused a change that no caller requested: a rule of Skep's, or what the runtime reports. */
type StepActor = Extract<EventActor, 'skep' | 'runtime'>;

/** `write`: `by` is who caused it; null if no event is written. After each step the next one is decided again. */
export type SandboxStep =
  | { readonly kind: 'none' }
  | { readonly kind: 'write'; readonly to: Sandbox; readonly by: StepActor | null }
  | { readonly kind: 'take-start-slot' }
  | { readonly kind: 'launch' }
  | { readonly kind: 'await-ready' }
  | { readonly kind: 'freeze' }
  | { readonly kind: 'stop' }
  | { readonly kind: 'resume' }
  | { readonly kind: 'remove' };

const none: SandboxStep = { kind: 'none' };
const vanished: Reason = { code: 'vanished' };

export interface StepCircumstances {
  /** Default: true. */
  readonly canFreeze?: boolean;
  /** True if an agent or an execution works in the sandbox, so it is not idle. Default: false. */
  readonly isInUse?: boolean;
  /** True if the sandbox was run again just now, so a stopped one has ended again. Default: false. */
  readonly rerun?: boolean;
  /** When this server began to watch, in milliseconds since the epoch. Default: before the start or resumption. */
  readonly watchedSince?: number;
}

/** Decides the next step from the record and the report of the runtime (null if it does not answer). Pure and total. */
export function nextSandboxStep(
  sandbox: Sandbox,
  observed: ObservedSandbox | null,
  now: number,
  { canFreeze = true, isInUse = false, rerun = false, watchedSince = 0 }: StepCircumstances = {},
): SandboxStep {
  if (sandbox.deletedAt !== null) {
    if (observed === null) return none;
    if (observed.state !== 'absent') return { kind: 'remove' };
    return sandbox.removedAt === null ? writeStep(nextVersion(sandbox, now, { removedAt: now }), null) : none;
  }
  const end = dueEndOfLife(sandbox, now);
  if (end !== null) return writeStep(markDeleted(sandbox, end.reason, now), 'skep');
  const deadline = readyDeadline(sandbox, watchedSince);
  if (observed === null) return whileRuntimeIsSilent(sandbox, now, deadline);
  switch (sandbox.status) {
    case 'STARTING':
      return whileStarting(sandbox, observed, now, deadline);
    case 'RUNNING':
      return whileRunning(sandbox, observed, now, canFreeze, isInUse);
    case 'PAUSING':
      return whilePausing(sandbox, observed, now, canFreeze);
    case 'PAUSED':
      return whilePaused(sandbox, observed, now, canFreeze);
    case 'RESUMING':
      return whileResuming(sandbox, observed, now, deadline, rerun);
    case 'ERROR':
    case 'MISSING':
      // A sandbox in quarantine that is gone is of no use.
      if (isQuarantined(sandbox) && observed.state === 'absent') return writeStep(markDeleted(sandbox, vanished, now), 'runtime');
      // None of its processes may run any more. The files stay, so that people can look into the error.
      if (observed.state === 'running' || observed.state === 'frozen') return { kind: 'stop' };
      return correctReasonStep(sandbox, observed, now) ?? clearStillRunningStep(sandbox, now);
  }
}

/** A runtime may learn only after the end that memory was the cause. The details of the end stay. Null if there is nothing to correct. */
function correctReasonStep(sandbox: Sandbox, { reason }: ObservedSandbox, now: number): SandboxStep | null {
  const { statusReason } = sandbox;
  if (statusReason?.code !== 'process_exited' || reason?.code !== 'out_of_memory') return null;
  const { program: _notOfMemory, ...details } = statusReason;
  return writeStep(nextVersion(sandbox, now, { statusReason: { ...details, ...reason } }), null);
}

/** The step that is safe in every state and returns the new state, so no inspect is needed first. Null if there is none. */
export function stepWithoutInspect(sandbox: Sandbox, canFreeze: boolean): SandboxStep | null {
  if (sandbox.deletedAt !== null || sandbox.status !== 'PAUSING') return null;
  return { kind: pauseKindFor(sandbox, canFreeze) };
}

function pauseKindFor({ pauseKind }: Sandbox, canFreeze: boolean): PauseKind {
  return canFreeze ? (pauseKind ?? 'freeze') : 'stop';
}

function whileRuntimeIsSilent(sandbox: Sandbox, now: number, deadline: number | null): SandboxStep {
  if (sandbox.status !== 'STARTING' && sandbox.status !== 'RESUMING') return none;
  // The time limit begins without a start slot, so a runtime that never answers cannot block the start for ever.
  if (deadline === null) return writeStep(beginStartTimeLimit(sandbox, now, { code: 'runtime_silent' }), null);
  return now >= deadline ? tooLateStep(sandbox, { code: 'runtime_silent' }, now) : none;
}

function whileStarting(sandbox: Sandbox, observed: ObservedSandbox, now: number, deadline: number | null): SandboxStep {
  if (observed.state === 'stopped' && !observed.endedFromOutside) {
    return failedStep(sandbox, observed.reason ?? { code: 'ended_while_starting' }, now, 'runtime');
  }
  if (deadline === null) return beginStep(sandbox, observed, now);
  if (now >= deadline) return tooLateStep(sandbox, sandbox.statusReason, now);
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

/** Begins the time limit. Processes that exist need no start slot to become ready or to continue. */
function beginStep(sandbox: Sandbox, { state }: ObservedSandbox, now: number): SandboxStep {
  const exist = state === 'running' || state === 'frozen';
  return exist ? writeStep(beginStartTimeLimit(sandbox, now, sandbox.statusReason), null) : { kind: 'take-start-slot' };
}

function whileRunning(sandbox: Sandbox, observed: ObservedSandbox, now: number, canFreeze: boolean, isInUse: boolean): SandboxStep {
  switch (observed.state) {
    case 'running': {
      const due = dueTimeoutPause(sandbox, now, canFreeze) ?? (isInUse ? null : dueIdleAction(sandbox, now, canFreeze));
      if (due !== null) {
        const pauseKind = due.tier === 'stop' ? 'stop' : pauseKindFor(sandbox, canFreeze);
        return transitionStep(sandbox, 'pause', { now, reason: due.reason, pauseKind }, 'skep');
      }
      if (isPauseGivenUp(sandbox, now)) return writeStep(nextVersion(sandbox, now, { statusReason: null }), null);
      return hasOtherUrls(sandbox, observed) ? writeStep(nextVersion(sandbox, now, { exposedUrls: observed.exposedUrls }), null) : none;
    }
    case 'frozen':
      return transitionStep(sandbox, 'pause', { now, reason: { code: 'frozen_outside' }, pauseKind: 'freeze' }, 'runtime');
    case 'created':
    case 'stopped':
      return endedWhileRunning(sandbox, observed, now);
    case 'absent':
      return transitionStep(sandbox, 'vanished', { now, reason: vanished }, 'runtime');
  }
}

/** Returns true if the record still says why a pause failed, although the time to repeat it is over. */
function isPauseGivenUp(sandbox: Sandbox, now: number): boolean {
  return sandbox.statusReason?.code === 'failure' && sandbox.refused !== null && mayTryAgain(sandbox, now);
}

function endedWhileRunning(sandbox: Sandbox, { reason, endedFromOutside }: ObservedSandbox, now: number): SandboxStep {
  if (!endedFromOutside) return transitionStep(sandbox, 'crashed', { now, reason: reason ?? { code: 'processes_ended' } }, 'runtime');
  return transitionStep(sandbox, 'pause', { now, reason: { code: 'ended_outside', cause: reason }, pauseKind: 'stop' }, 'runtime');
}

function whilePausing(sandbox: Sandbox, observed: ObservedSandbox, now: number, canFreeze: boolean): SandboxStep {
  const tier = pauseKindFor(sandbox, canFreeze);
  const paused = (reason: Reason | null, pauseKind: PauseKind, by: StepActor): SandboxStep =>
    transitionStep(sandbox, 'paused', { now, reason, pauseKind }, by);
  switch (observed.state) {
    case 'running':
      return { kind: tier };
    case 'frozen':
      return tier === 'stop' ? { kind: 'stop' } : paused(sandbox.statusReason, 'freeze', 'skep');
    case 'created':
    case 'stopped':
      return tier === 'stop'
        ? paused(sandbox.statusReason ?? observed.reason, 'stop', 'skep')
        : paused(endedWhileFrozen(observed), 'stop', 'runtime');
    case 'absent':
      return transitionStep(sandbox, 'vanished', { now, reason: vanished }, 'runtime');
  }
}

function whilePaused(sandbox: Sandbox, observed: ObservedSandbox, now: number, canFreeze: boolean): SandboxStep {
  switch (observed.state) {
    case 'running':
      // A paused sandbox does not count against the limits, so it must not run: a resumption whose response was lost, or one from outside,
      // is undone. `since` is removed first, because the sandbox has run since then.
      if (sandbox.pausedBy?.since !== undefined) {
        return writeStep(nextVersion(sandbox, now, { pausedBy: { ...sandbox.pausedBy, since: undefined } }), null);
      }
      return { kind: pauseKindFor(sandbox, canFreeze) };
    case 'absent':
      return transitionStep(sandbox, 'vanished', { now, reason: vanished }, 'runtime');
    case 'created':
    case 'stopped':
      if (sandbox.pauseKind === 'freeze') return writeStep(stopFrozen(sandbox, endedWhileFrozen(observed), now), 'runtime');
      break;
    case 'frozen':
      if (sandbox.pauseKind === 'stop') return { kind: 'stop' };
  }
  const due = dueIdleAction(sandbox, now, canFreeze);
  if (due === null) return clearStillRunningStep(sandbox, now);
  return writeStep((due.tier === 'delete' ? markDeleted : stopFrozen)(sandbox, due.reason, now), 'skep');
}

/** Removes the note that the sandbox still runs. */
function clearStillRunningStep(sandbox: Sandbox, now: number): SandboxStep {
  return sandbox.statusReason?.code === 'still_running' ? writeStep(clearStillRunning(sandbox, now), null) : none;
}

function whileResuming(
  sandbox: Sandbox, observed: ObservedSandbox, now: number, deadline: number | null, rerun: boolean,
): SandboxStep {
  if (observed.state === 'absent') return failedStep(sandbox, vanished, now, 'runtime');
  // A frozen sandbox reports no progress while it is resumed.
  const last = sandbox.pauseKind === 'freeze' ? null : sandbox.statusReason;
  if (observed.state === 'running' && sandbox.pauseKind === 'freeze') {
    // A frozen sandbox was ready before, so no probe is needed, and it is never too late.
    return transitionStep(sandbox, 'ready', { now, reason: { code: 'processes_continued' } }, 'runtime');
  }
  if (deadline === null) return beginStep(sandbox, observed, now);
  if (now >= deadline) return tooLateStep(sandbox, last, now);
  if (observed.state === 'running') return { kind: 'await-ready' };
  if (observed.state === 'frozen') return { kind: 'resume' };
  if (rerun && !observed.endedFromOutside) return failedStep(sandbox, observed.reason ?? { code: 'ended_while_resuming' }, now, 'runtime');
  if (sandbox.pauseKind !== 'freeze') return { kind: 'resume' };
  // Its processes ended before it was resumed. It waits for a start slot to run again.
  return writeStep(nextVersion(sandbox, now, { startingSince: null, pauseKind: 'stop', statusReason: endedWhileFrozen(observed) }), null);
}

function writeStep(to: Sandbox, by: StepActor | null): SandboxStep {
  return { kind: 'write', to, by };
}

/** The lifecycle has every transition that is decided here. */
function transitionStep(sandbox: Sandbox, transition: SandboxTransition, change: TransitionChange, by: StepActor): SandboxStep {
  const to = applyTransition(sandbox, transition, by, change);
  return to === null ? none : writeStep(to, by);
}

function failedStep(sandbox: Sandbox, reason: Reason, now: number, by: StepActor): SandboxStep {
  return transitionStep(sandbox, 'failed', { now, reason }, by);
}

/** Returns true if the ports of a running sandbox have other URLs than the record says. A report without all ports decides nothing. */
function hasOtherUrls({ spec, exposedUrls }: Sandbox, observed: ObservedSandbox): boolean {
  if (observed.exposedUrls.length !== spec.ports.length) return false;
  return !observed.exposedUrls.every(({ port, url }) => exposedUrls.some((written) => written.port === port && written.url === url));
}

/** A sandbox that was frozen is PAUSED again, since an ERROR would end its processes, which only wait for the runtime. */
function tooLateStep(sandbox: Sandbox, last: Reason | null, now: number): SandboxStep {
  const isFrozen = sandbox.status === 'RESUMING' && sandbox.pauseKind === 'freeze';
  const reason = { code: 'not_ready_in_time', withinMs: sandbox.spec.ready.withinMs, last } as const;
  return transitionStep(sandbox, isFrozen ? 'refused' : 'failed', { now, reason }, 'skep');
}

function endedWhileFrozen({ reason }: ObservedSandbox): Reason {
  return { code: 'ended_while_frozen', cause: reason };
}
