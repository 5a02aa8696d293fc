import { fingerprintOf } from './fingerprint.ts';
import type { Reason } from './reason.ts';
import { newSandbox, unowned, type ExposedUrl, type NewSandbox, type PlannedSandbox, type Sandbox } from './sandbox.ts';
import type { SandboxSpec } from './sandbox-spec.ts';

/** A spec with a pool, and its {@link poolFingerprint}. */
export interface PooledSpec {
  readonly spec: SandboxSpec;
  readonly fingerprint: string;
}

/** Returns how many concurrent starts pools may use: half of them. The rest is left to waiting owners. */
export function poolStartsAtOnce(startsAtOnce: number): number {
  return Math.max(1, Math.floor(startsAtOnce / 2));
}

export interface PoolMember {
  readonly sandbox: Sandbox;
  /** A digest of the spec. A member of an earlier version of the spec is not given to an owner. */
  readonly fingerprint: string;
}

/** Returns the digest of everything in a spec that a running sandbox can't change. */
export function poolFingerprint(spec: SandboxSpec): string {
  const {
    description: _description, rest: _rest, pool: _pool, agent: _agent, wakeOnAccess: _wakeOnAccess, allowedSecrets: _allowedSecrets,
    allowPlainSecrets: _allowPlainSecrets, ...content
  } = spec;
  return fingerprintOf(content);
}

export function newPoolMember(member: Omit<NewSandbox, 'ownerId'>): Sandbox {
  return newSandbox({ ...member, ownerId: unowned });
}

/** Returns the owner's record of a claimed member. The running processes stay the same. Its age counts from now. */
export function claimMember(member: Sandbox, planned: PlannedSandbox, exposedUrls: readonly ExposedUrl[]): Sandbox {
  const { instanceId, sessionApiKey } = member;
  const statusReason = { code: 'claimed_from_pool', instanceId } as const;
  return { ...newSandbox({ ...planned, sessionApiKey }), instanceId, exposedUrls, status: 'RUNNING', statusReason };
}

export interface PoolPlan {
  /** Members that are of no use, each with the reason. */
  readonly remove: readonly { readonly sandbox: Sandbox; readonly reason: Reason }[];
  /** Members to add, in this order. */
  readonly add: readonly PooledSpec[];
}

/** A younger member may belong to another process with another configuration. */
const minMemberAgeMs = 60_000;

/**
 * Returns which members to add and which to remove. At most `atOnce` members start at a time, distributed over the specs. A spec with a
 * blocked fingerprint starts none. Young members stay, because another process may want them: during an update, two processes with
 * different configurations would remove each other's members as fast as they add them.
 */
export function planPool(
  members: readonly PoolMember[],
  wanted: readonly PooledSpec[],
  { atOnce, blockedFingerprints, now }: {
    readonly atOnce: number;
    readonly blockedFingerprints: ReadonlySet<string>;
    readonly now: number;
  },
): PoolPlan {
  const missing = new Map(wanted.map(({ spec, fingerprint }) => [fingerprint, spec.pool.size]));
  const remove: { sandbox: Sandbox; reason: Reason }[] = [];
  let starting = 0;
  // Running members come first, so that starting ones are the surplus.
  for (const { sandbox, fingerprint } of members.toSorted((a, b) => rank(a.sandbox) - rank(b.sandbox))) {
    const missingCount = missing.get(fingerprint);
    const reason = removalReason(sandbox, missingCount, now - sandbox.createdAt < minMemberAgeMs);
    if (reason !== null) {
      remove.push({ sandbox, reason });
      continue;
    }
    if (sandbox.status === 'STARTING') starting += 1;
    if (missingCount !== undefined) missing.set(fingerprint, missingCount - 1);
  }
  const startable = wanted.filter(({ fingerprint }) => !blockedFingerprints.has(fingerprint));
  return { remove, add: roundRobin(startable, missing, Math.max(0, atOnce - starting)) };
}

function rank({ status }: Sandbox): number {
  return status === 'RUNNING' ? 0 : 1;
}

/** Returns why the member is of no use; null if it is useful, or may be. `missing`: how many members its pool still needs. */
function removalReason({ status, statusReason }: Sandbox, missing: number | undefined, isYoung: boolean): Reason | null {
  if (missing === undefined) return isYoung ? null : { code: 'pool_spec_changed' };
  if (status !== 'RUNNING' && status !== 'STARTING') return { code: 'pool_member_lost', status, cause: statusReason };
  return missing > 0 || isYoung ? null : { code: 'pool_full' };
}

/** Returns one of each spec, then the next of each, until nothing is missing or `max` is reached. */
function roundRobin(specs: readonly PooledSpec[], missing: ReadonlyMap<string, number>, max: number): PooledSpec[] {
  const rounds = Math.max(0, ...specs.map(({ fingerprint }) => missing.get(fingerprint) ?? 0));
  const perRound = Array.from({ length: Math.min(rounds, max) }, (_, round) =>
    specs.filter(({ fingerprint }) => (missing.get(fingerprint) ?? 0) > round),
  );
  return perRound.flat().slice(0, max);
}
