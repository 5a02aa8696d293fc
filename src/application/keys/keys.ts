import type { Auth } from '../../ports/auth.ts';
import { bindUseCases, type Bound } from '../use-cases.ts';
import { createKey } from './create-key.ts';
import { listKeys } from './list-keys.ts';
import { logIn } from './log-in.ts';
import { revokeKey } from './revoke-key.ts';

export interface KeysDeps {
  readonly auth: Auth;
}

const useCases = { create: createKey, list: listKeys, revoke: revokeKey, logIn };

/** The use cases of keys. Each throws `keys_unsupported` if the authentication of the deployment has no keys that Skep keeps. */
export type Keys = Bound<typeof useCases>;

export function createKeys(deps: KeysDeps): Keys {
  return bindUseCases(deps, useCases);
}
