import type { Reason } from './reason.ts';
import { nextVersion } from './sandbox-lifecycle.ts';
import { newSandbox, type NewSandbox, type Sandbox } from './sandbox.ts';
import { sandboxSpec, type SandboxSpec } from './sandbox-spec.ts';

/** The owner of sandboxes in quarantine. No caller has this id. */
export const quarantineOwner = 'skep:quarantine';

/** The default of how long a sandbox in quarantine is kept after its stop. */
export const defaultQuarantineForMs = 24 * 3_600_000;

export interface QuarantineDetails {
  /** How long it is kept after its stop, in milliseconds. */
  readonly keptForMs: number;
  /** Null, like the owner, if the runtime does not know it. */
  readonly specId: string | null;
  readonly ownerId: string | null;
}

/**
 * Returns a record for a sandbox that the runtime has and the store does not, for example after a restored backup. Its files stay until it
 * is adopted or deleted.
 */
export function newQuarantinedSandbox(orphan: Pick<NewSandbox, 'id' | 'sessionApiKey' | 'now'>, details: QuarantineDetails): Sandbox {
  const record = newSandbox({ ...orphan, ownerId: quarantineOwner, spec: sandboxSpec({ id: 'quarantine' }) });
  return putInQuarantine(record, details, orphan.now);
}

/** Returns the sandbox in quarantine. It loses its owner. */
export function putInQuarantine(sandbox: Sandbox, details: QuarantineDetails, now: number): Sandbox {
  const reason: Reason = { code: 'quarantined', ...details };
  // If the runtime does not stop it at once, the stop is due again, with back-off.
  const rest = { freezeAfterMs: 0, stopAfterMs: 0, deleteAfterMs: details.keptForMs, maxLifeMs: null };
  return nextVersion(sandbox, now, {
    ownerId: quarantineOwner,
    spec: { ...sandbox.spec, rest },
    status: 'PAUSING',
    statusReason: reason,
    statusSince: now,
    pauseKind: 'stop',
    pausedBy: { actor: 'skep', reason, version: sandbox.version + 1 },
  });
}

/** Returns true until the sandbox is adopted or deleted. */
export function isQuarantined({ ownerId, deletedAt }: Sandbox): boolean {
  return ownerId === quarantineOwner && deletedAt === null;
}

/** Returns the sandbox as a new one of the owner, with the rules of the spec; null if it is not in quarantine, or not stopped yet. */
export function adopt(sandbox: Sandbox, as: Pick<Sandbox, 'ownerId' | 'sessionApiKey'>, spec: SandboxSpec, now: number): Sandbox | null {
  if (!isQuarantined(sandbox) || sandbox.status !== 'PAUSED') return null;
  return nextVersion(sandbox, now, { ...as, spec, createdAt: now, statusReason: { code: 'adopted' }, statusSince: now });
}
