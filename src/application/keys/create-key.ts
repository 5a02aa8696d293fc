import { Failure } from '../../domain/failure.ts';
import type { Principal } from '../../domain/principal.ts';
import type { MadeApiKey, NewApiKey } from '../../ports/api-keys.ts';
import { keptKeys } from './kept-keys.ts';
import type { KeysDeps } from './keys.ts';

/**
 * Makes a key, of the caller's user unless told. Only for administrators: whoever gets hold of another key can't make one that outlives it.
 * Throws `forbidden`, also if the caller's key is limited to repositories, `key_name_taken` and `invalid_request`.
 */
export async function createKey(deps: KeysDeps, caller: Principal, asked: NewApiKey): Promise<MadeApiKey> {
  const { userId = caller.userId } = asked;
  if (caller.access !== 'admin' || (caller.repositories ?? null) !== null) throw new Failure('forbidden', { action: 'make a key' });
  return await keptKeys(deps).create({ ...asked, userId });
}
