import { randomUUID } from 'node:crypto';

/** Returns the name of a temporary file, which stands beside its target so that it can be renamed. It stays if the server is killed. */
export function temporaryName(): string {
  return `.skep-${randomUUID()}`;
}

/** Matches these names, as a pattern of git's ignored files. */
export const temporaryNames = '.skep-????????-????-????-????-????????????';
