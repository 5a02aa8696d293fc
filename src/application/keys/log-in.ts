import type { MadeApiKey } from '../../ports/api-keys.ts';
import { keptKeys } from './kept-keys.ts';
import type { KeysDeps } from './keys.ts';

/** Exchanges the code of a link for a key. Throws `login_code_invalid`. */
export async function logIn(deps: KeysDeps, code: string): Promise<MadeApiKey> {
  return await keptKeys(deps).exchangeLoginCode(code);
}
