import { Failure } from '../../domain/failure.ts';
import { excessOf, type Principal } from '../../domain/principal.ts';
import type { MadeApiKey, NewApiKey } from '../../ports/api-keys.ts';
import { keptKeys } from './kept-keys.ts';
import type { KeysDeps } from './keys.ts';

/**
 * Makes a key of the caller's user, unless told, which may list and clone what the caller's may, unless told. Throws
 * `key_exceeds_own` if it could do more than the caller's, `key_name_taken`, and `invalid_request`.
 */
export async function createKey(deps: KeysDeps, caller: Principal, asked: NewApiKey): Promise<MadeApiKey> {
  const { userId = caller.userId, access = 'full', repositories = caller.repositories ?? null } = asked;
  const excess = excessOf(caller, { userId, access, repositories });
  if (excess !== null) throw new Failure('key_exceeds_own', { excess });
  return await keptKeys(deps).create({ ...asked, userId, access, repositories });
}
