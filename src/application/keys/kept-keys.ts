import { Failure } from '../../domain/failure.ts';
import type { ApiKeys } from '../../ports/api-keys.ts';
import type { KeysDeps } from './keys.ts';

export function keptKeys({ auth: { keys } }: KeysDeps): ApiKeys {
  if (keys === undefined) throw new Failure('keys_unsupported', {});
  return keys;
}
