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

export function chooseOption(policy: Exclude<PermissionPolicy, 'ask'>, options: readonly PermissionOption[]): PermissionOption | null {
  const [once, always] = policy === 'allow' ? ['allow_once', 'allow_always'] : ['reject_once', 'reject_always'];
  return options.find(({ kind }) => kind === once) ?? options.find(({ kind }) => kind === always) ?? null;
}
