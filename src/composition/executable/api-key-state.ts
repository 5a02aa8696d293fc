import { isFailureOf } from '../../domain/failure.ts';
import { isKeyValid, type KeyAccess } from '../../domain/principal.ts';
import type { ApiKeyStore } from '../../ports/api-key-store.ts';
import type { Auth } from '../../ports/auth.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Random } from '../../ports/random.ts';
import { type Line, note, notOk, ok } from './check-line.ts';

/**
 * The state of the key in `SKEP_API_KEY`, which the client's commands and the examples of the first screen send.
 *
 * - `static`: valid because the variable is set. `stray`: also valid, but it was made for another store.
 * - `stored`: a key of the store.
 * - `refused`: a key of the store that was revoked or has expired.
 */
export type KeyState =
  | { readonly kind: 'static' | 'stray' | 'refused' }
  | { readonly kind: 'stored'; readonly name: string; readonly access: KeyAccess };

export async function keyState(apiKey: string, auth: Auth): Promise<KeyState> {
  try {
    const { keyName, access } = await auth.authenticate(apiKey);
    if (keyName !== 'SKEP_API_KEY') return { kind: 'stored', name: keyName, access };
    return { kind: apiKey.startsWith('skep_') ? 'stray' : 'static' };
  } catch (error) {
    if (isFailureOf(error, 'unauthorized')) return { kind: 'refused' };
    throw error;
  }
}

/** Returns the state as a line for a person. */
export function keyLine(state: KeyState): Line {
  const key = 'the key in SKEP_API_KEY';
  switch (state.kind) {
    case 'static':
      return ok(`${key} is valid for as long as the server has it set`);
    case 'stray':
      return note(`${key} was made by Skep, but not for this store: it is valid for as long as the server has it set, with full access, `
        + 'and can not be revoked');
    case 'refused':
      return notOk(`${key} was revoked or has expired: every request with it is refused`);
    case 'stored':
      return state.access === 'read'
        ? note(`${key} is the key ${state.name} of the store, which may only read: whatever changes something is refused`)
        : ok(`${key} is the key ${state.name} of the store`);
  }
}

/** What the store holds if no key is set: one that was made just now, one from before, or none that is valid. */
export type FirstKey = { readonly kind: 'made'; readonly key: string } | { readonly kind: 'kept' | 'none valid' };

/** Makes a key if none was ever made. */
export async function firstKey(keys: ApiKeyStore, deps: { readonly clock: Clock; readonly random: Random }): Promise<FirstKey> {
  const records = await keys.list();
  if (records.length > 0) return { kind: records.some((record) => isKeyValid(record, deps.clock.now())) ? 'kept' : 'none valid' };
  const { createApiKeys } = await import('../../adapters/auth/api-keys/index.ts');
  const { key } = await createApiKeys({ keys, ...deps }).create({ name: 'first' });
  return { kind: 'made', key };
}
