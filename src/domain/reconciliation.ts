import type { PauseKind, Sandbox } from './sandbox.ts';
import type { SandboxFact } from './sandbox-fact.ts';
import type { SandboxEvent } from './sandbox-lifecycle.ts';
import { restDue } from './rest.ts';

/**
 * What to do next for one sandbox, given what is written and what is found. `record` writes a move; the others act on
 * the runtime, after which the same question is asked again.
 */
export type Step =
  | { readonly kind: 'none' }
  | { readonly kind: 'record'; readonly event: SandboxEvent; readonly detail: string | null; readonly pauseKind?: PauseKind }
  | { readonly kind: 'deepen'; readonly detail: string }
  | { readonly kind: 'delete'; readonly detail: string }
  | { readonly kind: 'launch' }
  | { readonly kind: 'await-ready' }
  | { readonly kind: 'freeze' }
  | { readonly kind: 'stop' }
  | { readonly kind: 'resume' }
  | { readonly kind: 'remove' }
  | { readonly kind: 'forget' };

const none: Step = { kind: 'none' };

/** Decides the next step. Pure and total: the same record, fact and time always give the same step. */
export function decide(sandbox: Sandbox, fact: SandboxFact, now: number): Step {
  if (sandbox.deletedAt !== null) {
    if (sandbox.removedAt !== null && fact.state === 'absent') return none;
    return fact.state === 'absent' ? { kind: 'forget' } : { kind: 'remove' };
  }
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
      return whileResuming(sandbox, fact, now);
    case 'ERROR':
    case 'MISSING':
      // A record that has given up owns no running process; the files stay for whoever looks into it.
      return fact.state === 'running' || fact.state === 'frozen' ? { kind: 'stop' } : none;
  }
}

/** The same where the runtime does not tell the fact: only a deadline can be decided then. */
export function decideBlind(sandbox: Sandbox, now: number): Step {
  if (sandbox.deletedAt !== null || now < readyDeadline(sandbox)) return none;
  const detail = `${tooLate(sandbox)}; its runtime does not answer`;
  if (sandbox.status === 'STARTING') return { kind: 'record', event: 'expired', detail };
  return sandbox.status === 'RESUMING' ? { kind: 'record', event: 'failed', detail } : none;
}

/** When the start or resumption of the sandbox is too late, in milliseconds since the epoch. */
export function readyDeadline(sandbox: Sandbox): number {
  return sandbox.statusSince + sandbox.spec.ready.withinMs;
}

function whileStarting(sandbox: Sandbox, fact: SandboxFact, now: number): Step {
  if (fact.state === 'stopped') return { kind: 'record', event: 'failed', detail: fact.detail ?? 'it ended while it started' };
  if (now >= readyDeadline(sandbox)) return { kind: 'record', event: 'expired', detail: tooLate(sandbox) };
  switch (fact.state) {
    case 'absent':
    case 'created':
      return { kind: 'launch' };
    case 'frozen':
      return { kind: 'resume' };
    case 'running':
      return { kind: 'await-ready' };
  }
}

function whileRunning(sandbox: Sandbox, fact: SandboxFact, now: number): Step {
  switch (fact.state) {
    case 'running': {
      const due = restDue(sandbox, now);
      return due === null ? none : { kind: 'record', event: 'pause', detail: due.detail, pauseKind: 'freeze' };
    }
    case 'frozen':
      return { kind: 'record', event: 'pause', detail: 'it was frozen from outside', pauseKind: 'freeze' };
    case 'created':
    case 'stopped':
      return { kind: 'record', event: 'crashed', detail: fact.detail ?? 'its processes ended' };
    case 'absent':
      return { kind: 'record', event: 'vanished', detail: 'the runtime no longer has it' };
  }
}

function whilePausing(sandbox: Sandbox, fact: SandboxFact): Step {
  switch (fact.state) {
    case 'running':
      return { kind: sandbox.pauseKind ?? 'freeze' };
    case 'frozen':
      return sandbox.pauseKind === 'stop'
        ? { kind: 'stop' }
        : { kind: 'record', event: 'paused', detail: sandbox.statusDetail, pauseKind: 'freeze' };
    case 'created':
    case 'stopped':
      return { kind: 'record', event: 'paused', detail: sandbox.statusDetail ?? fact.detail, pauseKind: 'stop' };
    case 'absent':
      return { kind: 'record', event: 'refused', detail: 'the runtime no longer has it' };
  }
}

function whilePaused(sandbox: Sandbox, fact: SandboxFact, now: number): Step {
  switch (fact.state) {
    case 'running':
      // What is paused does not count against the limits, so it may not run: a resumption whose answer was lost, or one
      // from outside, is undone.
      return { kind: sandbox.pauseKind ?? 'freeze' };
    case 'absent':
      return { kind: 'record', event: 'vanished', detail: 'the runtime no longer has it' };
    case 'created':
    case 'stopped':
      if (sandbox.pauseKind === 'freeze') {
        return { kind: 'deepen', detail: 'its processes ended while it was frozen; the files are kept' };
      }
      break;
    case 'frozen':
      if (sandbox.pauseKind === 'stop') return { kind: 'stop' };
  }
  const due = restDue(sandbox, now);
  if (due === null) return none;
  return due.tier === 'delete' ? { kind: 'delete', detail: due.detail } : { kind: 'deepen', detail: due.detail };
}

function whileResuming(sandbox: Sandbox, fact: SandboxFact, now: number): Step {
  if (fact.state === 'absent') return { kind: 'record', event: 'failed', detail: 'the runtime no longer has it' };
  if (now >= readyDeadline(sandbox)) return { kind: 'record', event: 'failed', detail: tooLate(sandbox) };
  return fact.state === 'running' ? { kind: 'await-ready' } : { kind: 'resume' };
}

function tooLate({ spec }: Sandbox): string {
  return `it was not ready within ${spec.ready.withinMs / 1000} s`;
}
