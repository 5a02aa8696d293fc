import { type ApiKeyRecord, isInScope, type Principal, scopeOf } from '../../domain/principal.ts';
import { keptKeys } from './kept-keys.ts';
import type { KeysDeps } from './keys.ts';

/** Returns the keys of all users for an administrator, others those of the caller's user; oldest first, expired and revoked ones too. */
export async function listKeys(deps: KeysDeps, caller: Principal): Promise<readonly ApiKeyRecord[]> {
  const keys = await keptKeys(deps).list();
  return keys.filter(({ userId, access }) => isInScope(userId, scopeOf(caller)) && (access !== 'admin' || caller.access === 'admin'));
}
