/** How an agent's requests for permission are answered: granted, left to the owner, or refused. */
export const permissionPolicies = ['allow', 'ask', 'deny'] as const;

export type PermissionPolicy = (typeof permissionPolicies)[number];

export const permissionOptionKinds = ['allow_once', 'allow_always', 'reject_once', 'reject_always'] as const;

export interface PermissionOption {
  readonly optionId: string;
  readonly name: string;
  readonly kind: (typeof permissionOptionKinds)[number];
}

export interface PermissionRequest {
  readonly permissionId: string;
  readonly toolCallId: string;
  readonly title: string;
  readonly options: readonly PermissionOption[];
}

/** A request that waits for its owner. */
export interface OpenPermission extends PermissionRequest {
  /** In milliseconds since the epoch. Absent in older records. */
  readonly requestedAt?: number | undefined;
}

/** Returns how long the owner may still answer, in milliseconds. The time may be that of another process, and the clock can be set back. */
export function timeLeftToAnswer({ requestedAt }: OpenPermission, withinMs: number, now: number): number {
  return Math.min(withinMs, Math.max(0, (requestedAt ?? now) + withinMs - now));
}

export function chooseOption(policy: Exclude<PermissionPolicy, 'ask'>, options: readonly PermissionOption[]): PermissionOption | null {
  const [once, always] = policy === 'allow' ? ['allow_once', 'allow_always'] : ['reject_once', 'reject_always'];
  return options.find(({ kind }) => kind === once) ?? options.find(({ kind }) => kind === always) ?? null;
}
