import type { ExposedUrl, Sandbox } from './sandbox.ts';
import { written } from './sandbox-lifecycle.ts';

/** The record of a sandbox whose turn has come: from now on the time counts that its spec gives it. */
export function takeTurn(sandbox: Sandbox, now: number, detail: string | null = null): Sandbox {
  return written(sandbox, now, { turnAt: now, statusDetail: detail });
}

/** The record of a frozen sandbox whose processes ended before it was resumed: it is run again from its files, in its turn. */
export function requeue(sandbox: Sandbox, detail: string, now: number): Sandbox {
  return written(sandbox, now, { turnAt: null, pauseKind: 'stop', statusDetail: detail });
}

/** The record with what goes on right now, in words. */
export function tell(sandbox: Sandbox, detail: string, now: number): Sandbox {
  return written(sandbox, now, { statusDetail: detail });
}

/** The record of a running sandbox that is reached elsewhere than before. */
export function relocate(sandbox: Sandbox, exposedUrls: readonly ExposedUrl[], now: number): Sandbox {
  return written(sandbox, now, { exposedUrls });
}

/** When the start or resumption is too late, in milliseconds since the epoch; null while its turn has not come. */
export function readyDeadline({ turnAt, spec }: Sandbox): number | null {
  return turnAt === null ? null : turnAt + spec.ready.withinMs;
}

/** Is the start or resumption too late? */
export function isTooLate(sandbox: Sandbox, now: number): boolean {
  const deadline = readyDeadline(sandbox);
  return deadline !== null && now >= deadline;
}
