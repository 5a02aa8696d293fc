import type { ConversationLimits } from './conversation-limits.ts';
import type { OwnerScope } from './principal.ts';
import { quarantineOwner } from './quarantine.ts';
import { runningStatuses } from './sandbox-lifecycle.ts';
import type { SandboxLimits } from './admission-limits.ts';
import type { SandboxStatus } from './sandbox.ts';

/** How many records of one owner have one status. */
export interface OwnerCount {
  readonly ownerId: string;
  readonly count: number;
}

export type SandboxCount = OwnerCount & { readonly status: SandboxStatus };

type LimitName = 'running' | 'existing' | 'conversations';

export interface LimitUsage {
  readonly limit: LimitName | `${LimitName}_per_owner`;
  /** Null is no limit. */
  readonly max: number | null;
  readonly used: number;
  /** The owner with this use; of all owners, the one nearest to the limit. Null for all owners together, and if there is none. */
  readonly ownerId: string | null;
}

/** Returns the use of the limits that apply to the scope. Only the scope of all owners includes the limits on all owners together. */
export function listLimitUsage(
  limits: SandboxLimits & ConversationLimits,
  counts: { readonly sandboxes: readonly SandboxCount[]; readonly conversations: readonly OwnerCount[] },
  scope: OwnerScope,
): readonly LimitUsage[] {
  const { sandboxes, conversations } = counts;
  const rules = [
    ['running', limits.running, limits.runningPerOwner, sandboxes.filter(({ status }) => runningStatuses.has(status))],
    ['existing', limits.existing, limits.existingPerOwner, sandboxes.filter(({ ownerId }) => ownerId !== quarantineOwner)],
    ['conversations', limits.conversations, limits.conversationsPerOwner, conversations],
  ] as const;
  return rules.flatMap(([limit, max, maxPerOwner, counted]): LimitUsage[] => {
    const fullest = fullestOwner(counted);
    const use = { used: fullest?.count ?? 0, ownerId: fullest?.ownerId ?? null };
    const perOwner: LimitUsage = { limit: `${limit}_per_owner`, max: maxPerOwner, ...use };
    if (scope !== null) return [{ ...perOwner, ownerId: scope }];
    return [{ limit, max, used: counted.reduce((sum, { count }) => sum + count, 0), ownerId: null }, perOwner];
  });
}

function fullestOwner(counts: readonly OwnerCount[]): OwnerCount | null {
  const byOwner = new Map<string, number>();
  for (const { ownerId, count } of counts) byOwner.set(ownerId, (byOwner.get(ownerId) ?? 0) + count);
  const [fullest] = [...byOwner].toSorted(([, a], [, b]) => b - a);
  return fullest === undefined ? null : { ownerId: fullest[0], count: fullest[1] };
}
