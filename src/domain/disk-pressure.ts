import { nextIdleAction } from './idle-policy.ts';
import { isQuarantined } from './quarantine.ts';
import type { ReasonOf } from './reason.ts';
import { isPooled, type Sandbox } from './sandbox.ts';

/** The disk that holds the sandboxes, without the space that is reserved for root. */
export interface DiskSpace {
  readonly totalBytes: number;
  readonly freeBytes: number;
}

/** The disk is used beyond the limit. */
export type DiskPressure = ReasonOf<'disk_pressure'>;

/** The default of how much of the disk may be used, in percent. */
export const defaultDiskUsedPercent = 90;

/** The minimum time that a sandbox is at rest before it is deleted early. */
const minIdleMs = 5 * 60_000;

/** Returns how much of the disk is used, in percent. Rounds up, as `df` does. */
export function usedPercentOf({ totalBytes, freeBytes }: DiskSpace): number {
  return Math.ceil((100 * (totalBytes - freeBytes)) / totalBytes);
}

/** Returns null if the disk is not used beyond the limit. With a limit of 100 it never is. */
export function diskPressure(space: DiskSpace, limitPercent: number): DiskPressure | null {
  const usedPercent = usedPercentOf(space);
  return usedPercent > limitPercent ? { code: 'disk_pressure', usedPercent, limitPercent } : null;
}

/** Returns the pool members. If there are none, returns the sandboxes at rest that their spec deletes anyway, the longest idle first. */
export function deletionCandidates(sandboxes: readonly Sandbox[], now: number): readonly Sandbox[] {
  const members = sandboxes.filter((sandbox) => isPooled(sandbox) && sandbox.deletedAt === null);
  if (members.length > 0) return members;
  return sandboxes.filter((sandbox) => isDeletionCandidate(sandbox, now)).toSorted((a, b) => idleSince(a) - idleSince(b));
}

/** Returns false for a sandbox in quarantine, and for a frozen one, which has to be stopped first. */
function isDeletionCandidate(sandbox: Sandbox, now: number): boolean {
  const { status, pauseKind, spec } = sandbox;
  const isAtRest = status === 'ERROR' || (status === 'PAUSED' && pauseKind === 'stop');
  if (!isAtRest || isQuarantined(sandbox) || spec.rest.deleteAfterMs === null) return false;
  return nextIdleAction(sandbox, true)?.tier === 'delete' && restedMs(sandbox, now) >= minIdleMs;
}

/** A time far in the future is unknown: the clock was set back since then. */
function restedMs({ statusSince, lastActiveAt }: Sandbox, now: number): number {
  return now - Math.max(...[statusSince, lastActiveAt].filter((at) => at <= now + minIdleMs));
}

function idleSince({ statusSince, lastActiveAt }: Sandbox): number {
  return Math.max(statusSince, lastActiveAt);
}
