import type { PermissionOption, PermissionPolicy } from './agent.ts';

const granting = ['allow_once', 'allow_always'] as const;
const refusing = ['reject_once', 'reject_always'] as const;

/**
 * The option that a policy chooses by itself, the narrowest of its kind first; null where the agent offers none. `ask`
 * chooses nothing.
 */
export function optionOf(policy: Exclude<PermissionPolicy, 'ask'>, options: readonly PermissionOption[]): PermissionOption | null {
  const wanted = policy === 'allow' ? granting : refusing;
  for (const kind of wanted) {
    const option = options.find((option) => option.kind === kind);
    if (option !== undefined) return option;
  }
  return null;
}
