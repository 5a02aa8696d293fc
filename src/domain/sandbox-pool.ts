import { fingerprintOf } from './fingerprint.ts';
import { newSandbox, unowned, type ExposedUrl, type NewSandbox, type Sandbox } from './sandbox.ts';
import type { SandboxSpec } from './sandbox-spec.ts';

/** A spec of which sandboxes are kept running, and the digest of what a running one is made of. */
export interface PooledSpec {
  readonly spec: SandboxSpec;
  readonly fingerprint: string;
}

/** How many of the starts at a time pools may take: half of them. The rest is left to owners who wait. */
export function poolStartsAtOnce(startsAtOnce: number): number {
  return Math.max(1, Math.floor(startsAtOnce / 2));
}

export interface PoolMember {
  readonly sandbox: Sandbox;
  readonly fingerprint: string;
}

/** The digest of all of a spec that a sandbox can't change once it runs. Its rest, its agent and its description come later. */
export function poolFingerprint(spec: SandboxSpec): string {
  const { description: _description, rest: _rest, pool: _pool, agent: _agent, ...content } = spec;
  return fingerprintOf(content);
}

/** The record of a new member of a pool. */
export function newPoolMember(asked: Omit<NewSandbox, 'ownerId'>): Sandbox {
  return newSandbox({ ...asked, ownerId: unowned });
}

/** The owner's record of a member that is handed out: what runs carries over, and its life begins now. */
export function claimedFromPool(member: Sandbox, asked: Omit<NewSandbox, 'sessionApiKey'>, exposedUrls: readonly ExposedUrl[]): Sandbox {
  const { instanceId, sessionApiKey } = member;
  const statusDetail = `taken from the pool of its spec, where it was ${instanceId}`;
  return { ...newSandbox({ ...asked, sessionApiKey }), instanceId, exposedUrls, status: 'RUNNING', statusDetail };
}

export interface PoolPlan {
  /** Members that are of no use, each with why in words. */
  readonly remove: readonly { readonly sandbox: Sandbox; readonly reason: string }[];
  /** Members to add, in this order. */
  readonly add: readonly PooledSpec[];
}

/** A member this young may have been added by another process, with a configuration of its own, a moment ago. */
const youngMs = 60_000;

/**
 * What a pool lacks and what it has too much of. At most `atOnce` members start at a time, over all specs in turn; what
 * `held` names starts none. What another process may want is left alone while it is young, since two processes of
 * different configurations, as while a deployment is renewed, would remove each other's members as fast as they add them.
 */
export function planPool(
  members: readonly PoolMember[],
  wanted: readonly PooledSpec[],
  { atOnce, held, now }: { readonly atOnce: number; readonly held: ReadonlySet<string>; readonly now: number },
): PoolPlan {
  const missing = new Map(wanted.map(({ spec, fingerprint }) => [fingerprint, spec.pool.size]));
  const remove: { sandbox: Sandbox; reason: string }[] = [];
  let starting = 0;
  // Those that run come first, so that it is a start that is one too many.
  for (const { sandbox, fingerprint } of members.toSorted((a, b) => rank(a.sandbox) - rank(b.sandbox))) {
    const lacking = missing.get(fingerprint);
    const reason = uselessness(sandbox, lacking, now - sandbox.createdAt < youngMs);
    if (reason !== null) {
      remove.push({ sandbox, reason });
      continue;
    }
    if (sandbox.status === 'STARTING') starting += 1;
    if (lacking !== undefined) missing.set(fingerprint, lacking - 1);
  }
  const startable = wanted.filter(({ fingerprint }) => !held.has(fingerprint));
  return { remove, add: inTurn(startable, missing, Math.max(0, atOnce - starting)) };
}

function rank({ status }: Sandbox): number {
  return status === 'RUNNING' ? 0 : 1;
}

/** Why the member is of no use; null where it is, or may be. `missing`: how many its pool lacks still. */
function uselessness({ status, statusDetail }: Sandbox, missing: number | undefined, isYoung: boolean): string | null {
  if (missing === undefined) return isYoung ? null : 'its spec has changed or has no pool any more';
  if (status !== 'RUNNING' && status !== 'STARTING') return `it is ${status}: ${statusDetail ?? 'no reason is known'}`;
  return missing > 0 || isYoung ? null : 'the pool has enough without it';
}

/** One of each spec in turn, until nothing is missing or there are so many. */
function inTurn(specs: readonly PooledSpec[], missing: ReadonlyMap<string, number>, most: number): PooledSpec[] {
  const rounds = Math.max(0, ...specs.map(({ fingerprint }) => missing.get(fingerprint) ?? 0));
  const turns = Array.from({ length: Math.min(rounds, most) }, (_, round) =>
    specs.filter(({ fingerprint }) => (missing.get(fingerprint) ?? 0) > round),
  );
  return turns.flat().slice(0, most);
}
