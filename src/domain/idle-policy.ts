import { isPooled, type Sandbox } from './sandbox.ts';
import { readyDeadline } from './sandbox-lifecycle.ts';

/** The tier of rest that a sandbox has become due for, and why in words. */
export interface IdleAction {
  readonly tier: 'freeze' | 'stop' | 'delete';
  readonly detail: string;
}

type Rest = IdleAction & { readonly at: number };

/** The next tier of rest and when it is due, in milliseconds since the epoch; null when no rule applies. */
export function nextIdleAction(sandbox: Sandbox): Rest | null {
  // What waits in a pool is replaced, and never rests.
  if (isPooled(sandbox) || sandbox.deletedAt !== null) return null;
  return earliest([tierOfStatus(sandbox), endOfLife(sandbox)]);
}

/** The tier that is due now; null when none is. */
export function dueIdleAction(sandbox: Sandbox, now: number): IdleAction | null {
  const rest = nextIdleAction(sandbox);
  return rest === null || now < rest.at ? null : rest;
}

/** Has the sandbox lived as long as its spec allows? Whatever its status, it is deleted then. */
export function dueEndOfLife(sandbox: Sandbox, now: number): IdleAction | null {
  const end = isPooled(sandbox) ? null : endOfLife(sandbox);
  return end === null || now < end.at ? null : end;
}

/** When something becomes due for the sandbox by itself, in milliseconds since the epoch; null for never. */
export function nextDueAt(sandbox: Sandbox): number | null {
  if (sandbox.deletedAt !== null) return null;
  const onItsWay = sandbox.status === 'STARTING' || sandbox.status === 'RESUMING';
  const times = [nextIdleAction(sandbox)?.at ?? null, onItsWay ? readyDeadline(sandbox) : null].filter((at) => at !== null);
  return times.length === 0 ? null : Math.min(...times);
}

function tierOfStatus({ status, pauseKind, lastActiveAt, statusSince, spec: { rest } }: Sandbox): Rest | null {
  if (status === 'RUNNING') {
    return at(rest.freezeAfterMs, lastActiveAt, 'freeze', (span) => `frozen: no activity for ${span}, as its spec says`);
  }
  if (status !== 'PAUSED') return null;
  return pauseKind === 'freeze'
    ? at(rest.stopAfterMs, statusSince, 'stop', (span) => `stopped: frozen for ${span}, as its spec says; the files are kept`)
    : at(rest.deleteAfterMs, statusSince, 'delete', (span) => `deleted: stopped for ${span}, as its spec says`);
}

function endOfLife({ createdAt, spec: { rest } }: Sandbox): Rest | null {
  return at(rest.maxLifeMs, createdAt, 'delete', (span) => `deleted: ${span} old, the longest life that its spec allows`);
}

function at(afterMs: number | null, since: number, tier: IdleAction['tier'], detail: (span: string) => string): Rest | null {
  return afterMs === null ? null : { tier, at: since + afterMs, detail: detail(spanOf(afterMs)) };
}

function earliest(rests: readonly (Rest | null)[]): Rest | null {
  return rests.filter((rest) => rest !== null).toSorted((a, b) => a.at - b.at)[0] ?? null;
}

const units = [['d', 86_400_000], ['h', 3_600_000], ['min', 60_000]] as const;

/** The span in the largest unit that divides it: `15 min`. */
function spanOf(ms: number): string {
  const [name, size] = units.find(([, size]) => ms >= size && ms % size === 0) ?? ['s', 1000];
  return `${ms / size} ${name}`;
}
