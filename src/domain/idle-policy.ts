import type { ReasonOf } from './reason.ts';
import { isPooled, type Sandbox } from './sandbox.ts';
import { mayTryAgain, readyDeadline } from './sandbox-lifecycle.ts';

export interface IdleAction {
  readonly tier: 'freeze' | 'stop' | 'delete';
  readonly reason: ReasonOf<'idle' | 'life_over' | 'timeout_over'>;
}

type DatedAction = IdleAction & { readonly at: number };

/** Returns the next action and when it is due, in milliseconds since the epoch; null if no rule applies. */
export function nextIdleAction(sandbox: Sandbox, canFreeze: boolean): DatedAction | null {
  // Pool members are replaced, never paused.
  if (isPooled(sandbox) || sandbox.deletedAt !== null) return null;
  const actions = [actionOfStatus(sandbox, canFreeze), endOfTimeout(sandbox, canFreeze), endOfLife(sandbox)];
  return actions.filter((action) => action !== null).toSorted((a, b) => a.at - b.at)[0] ?? null;
}

/** Returns the action that is due now; null if there is none. */
export function dueIdleAction(sandbox: Sandbox, now: number, canFreeze: boolean): IdleAction | null {
  const action = nextIdleAction(withoutPastRefusal(sandbox, now), canFreeze);
  return action === null || now < action.at ? null : action;
}

/** Returns the deletion of a sandbox that has lived as long as its spec allows, whatever its status; null if it may live on. */
export function dueEndOfLife(sandbox: Sandbox, now: number): IdleAction | null {
  const end = isPooled(sandbox) ? null : endOfLife(sandbox);
  return end === null || now < end.at ? null : end;
}

/** Returns the pause of a running sandbox whose timeout is over, even if it is in use; null if none is due. */
export function dueTimeoutPause(sandbox: Sandbox, now: number, canFreeze: boolean): IdleAction | null {
  const pause = isPooled(sandbox) ? null : endOfTimeout(withoutPastRefusal(sandbox, now), canFreeze);
  return pause === null || now < pause.at ? null : pause;
}

/** Returns when the sandbox is deleted however active it is, in milliseconds since the epoch; null for never. */
export function expiresAt(sandbox: Sandbox): number | null {
  return endOfLife(sandbox)?.at ?? null;
}

/**
 * Returns when something becomes due for the sandbox without a request, in milliseconds since the epoch; null for never. `watchedSince` is
 * when this server began to watch.
 */
export function nextDueAt(sandbox: Sandbox, watchedSince: number): number | null {
  if (sandbox.deletedAt !== null) return null;
  const isStarting = sandbox.status === 'STARTING' || sandbox.status === 'RESUMING';
  // When an action is due does not depend on what the runtime can do.
  const deadline = isStarting ? readyDeadline(sandbox, watchedSince) : null;
  const times = [nextIdleAction(sandbox, true)?.at ?? null, deadline].filter((at) => at !== null);
  return times.length === 0 ? null : Math.min(...times);
}

/** Returns the time from the creation to the end of the timeout. Null: the sandbox has no timeout. */
export function timeoutOf({ spec: { rest } }: Sandbox): number | null {
  return rest.timeoutPause === undefined ? rest.maxLifeMs : rest.timeoutPause.afterMs;
}

/** The same, but null if the timeout began by itself after a resumption, so no client expects it. */
export function chosenTimeoutOf(sandbox: Sandbox): number | null {
  return sandbox.spec.rest.timeoutPause?.isRenewed === true ? null : timeoutOf(sandbox);
}

/** Returns the sandbox with another time from its creation to the end of its timeout, which pauses or deletes it. */
export function withTimeout(sandbox: Sandbox, afterMs: number): Sandbox {
  const { spec } = sandbox;
  const { timeoutPause } = spec.rest;
  if (timeoutPause === undefined) return withMaxLife(sandbox, afterMs);
  return { ...sandbox, spec: { ...spec, rest: { ...spec.rest, timeoutPause: { ...timeoutPause, afterMs, isRenewed: false } } } };
}

/** Returns the sandbox with another time from its creation to its deletion. Null: it is never deleted for its age. */
export function withMaxLife(sandbox: Sandbox, maxLifeMs: number | null): Sandbox {
  const { spec } = sandbox;
  return { ...sandbox, spec: { ...spec, rest: { ...spec.rest, maxLifeMs } } };
}

/** Returns the maximum life of the sandbox if its spec allows `maxLifeMs` now. The configuration may have allowed it more before. */
export function longestLifeMs({ spec: { rest } }: Sandbox, maxLifeMs: number | null): number | null {
  return rest.maxLifeMs === null || maxLifeMs === null ? null : Math.max(rest.maxLifeMs, maxLifeMs);
}

/** After a jump of the time to an earlier one, the delay after a refusal is over, although `retryAt` is not. */
function withoutPastRefusal(sandbox: Sandbox, now: number): Sandbox {
  return mayTryAgain(sandbox, now) ? { ...sandbox, refused: null } : sandbox;
}

function actionOfStatus(sandbox: Sandbox, canFreeze: boolean): DatedAction | null {
  const { status, pauseKind, lastActiveAt, statusSince, spec: { rest } } = sandbox;
  if (status === 'RUNNING') return idleAction(sandbox, canFreeze ? 'freeze' : 'stop', rest.freezeAfterMs, lastActiveAt);
  if (status !== 'PAUSED') return null;
  if (pauseKind === 'freeze') return idleAction(sandbox, 'stop', rest.stopAfterMs, statusSince);
  return idleAction(sandbox, 'delete', rest.deleteAfterMs, statusSince);
}

function idleAction({ refused }: Sandbox, tier: IdleAction['tier'], afterMs: number | null, since: number): DatedAction | null {
  if (afterMs === null) return null;
  return { tier, at: Math.max(timeAfter(since, afterMs), refused?.retryAt ?? 0), reason: { code: 'idle', tier, afterMs } };
}

function endOfTimeout({ status, createdAt, refused, spec: { rest } }: Sandbox, canFreeze: boolean): DatedAction | null {
  const { kind, afterMs = null } = rest.timeoutPause ?? {};
  if (status !== 'RUNNING' || afterMs === null) return null;
  const tier = kind === 'freeze' && canFreeze ? 'freeze' : 'stop';
  return { tier, at: Math.max(timeAfter(createdAt, afterMs), refused?.retryAt ?? 0), reason: { code: 'timeout_over' } };
}

function endOfLife({ createdAt, spec: { rest } }: Sandbox): DatedAction | null {
  const { maxLifeMs: afterMs } = rest;
  return afterMs === null ? null : { tier: 'delete', at: timeAfter(createdAt, afterMs), reason: { code: 'life_over', afterMs } };
}

/** The last time that a `Date` can be. */
const lastTime = 8.64e15;

/** A record can have a longer duration than the configuration accepts now. Its time must still be one that can be shown. */
function timeAfter(since: number, ms: number): number {
  return Math.min(since + ms, lastTime);
}

const shortestActivityIntervalMs = 100;
const longestActivityIntervalMs = 30_000;

/** Returns how often the activity of a sandbox in use is written, in milliseconds: often enough that the idle policy does not pause it. */
export function activityIntervalMs({ spec }: Pick<Sandbox, 'spec'>): number {
  const thirdMs = Math.floor((spec.rest.freezeAfterMs ?? Infinity) / 3);
  return Math.max(shortestActivityIntervalMs, Math.min(longestActivityIntervalMs, thirdMs));
}
