import type { Sandbox } from './sandbox.ts';

/** The tier of rest that a sandbox has become due for, and why in words. */
export interface RestDue {
  readonly tier: 'freeze' | 'stop' | 'delete';
  readonly detail: string;
}

/** The next tier of rest and when it is due, in milliseconds since the epoch; null when no rule applies. */
export function nextRest(sandbox: Sandbox): { readonly tier: RestDue['tier']; readonly at: number } | null {
  const { rest } = sandbox.spec;
  if (sandbox.status === 'RUNNING') return at('freeze', sandbox.lastActiveAt, rest.freezeAfterMs);
  if (sandbox.status !== 'PAUSED') return null;
  return sandbox.pauseKind === 'freeze'
    ? at('stop', sandbox.statusSince, rest.stopAfterMs)
    : at('delete', sandbox.statusSince, rest.deleteAfterMs);
}

/** The tier that is due now; null when none is. */
export function restDue(sandbox: Sandbox, now: number): RestDue | null {
  const rest = nextRest(sandbox);
  if (rest === null || now < rest.at) return null;
  return { tier: rest.tier, detail: details[rest.tier] };
}

const details: Record<RestDue['tier'], string> = {
  freeze: 'frozen: no activity for as long as its spec allows',
  stop: 'stopped: frozen for as long as its spec allows; the files are kept',
  delete: 'deleted: stopped for as long as its spec allows',
};

function at(tier: RestDue['tier'], since: number, afterMs: number | null): { tier: RestDue['tier']; at: number } | null {
  return afterMs === null ? null : { tier, at: since + afterMs };
}
