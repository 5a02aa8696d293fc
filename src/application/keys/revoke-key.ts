import { Failure } from '../../domain/failure.ts';
import type { Principal } from '../../domain/principal.ts';
import { keptKeys } from './kept-keys.ts';
import type { KeysDeps } from './keys.ts';
import { listKeys } from './list-keys.ts';

/** Revokes the key with this id, or this name, at once. Idempotent by id. Throws `key_not_found`. */
export async function revokeKey(deps: KeysDeps, caller: Principal, idOrName: string): Promise<void> {
  const seen = await listKeys(deps, caller);
  const key = seen.find(({ id }) => id === idOrName) ?? seen.find(({ name, revokedAt }) => name === idOrName && revokedAt === null);
  if (key === undefined) throw new Failure('key_not_found', { id: idOrName });
  await keptKeys(deps).revoke(key.id);
}
