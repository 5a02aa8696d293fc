import { hash } from 'node:crypto';
import { Failure } from '../../../src/domain/failure.ts';
import type { Principal } from '../../../src/domain/principal.ts';
import type { Auth } from '../../../src/ports/auth.ts';
import type { Clock } from '../../../src/ports/clock.ts';

/** An auth with keys that the test creates. */
export interface MemoryAuth extends Auth {
  /** Returns a new key of the principal. */
  issue(principal: Principal, expiresInMs?: number): string;
  revoke(key: string): void;
}

export function createMemoryAuth(clock: Clock): MemoryAuth {
  const keys = new Map<string, { readonly principal: Principal; readonly expiresAt: number }>();
  let issued = 0;

  return {
    description: 'the keys that the test issued',
    issue(principal, expiresInMs = Infinity) {
      issued += 1;
      const key = `memory-key-${issued}`;
      const expiresAt = clock.now() + expiresInMs;
      keys.set(key, { principal: expiresAt === Infinity ? principal : { ...principal, expiresAt }, expiresAt });
      return key;
    },
    revoke: (key) => void keys.delete(key),
    async authenticate(credential) {
      const found = credential === null ? undefined : keys.get(credential);
      if (found === undefined || clock.now() >= found.expiresAt) throw new Failure('unauthorized', {});
      return found.principal;
    },
    async digestsOf(userId) {
      const valid = [...keys].filter(([, { principal, expiresAt }]) => clock.now() < expiresAt && (principal.userId === userId || principal.access === 'admin'));
      return valid.map(([key]) => hash('sha256', key, 'hex'));
    },
    async authenticateDigest(digest) {
      return await this.authenticate([...keys.keys()].find((key) => hash('sha256', key, 'hex') === digest) ?? null);
    },
  };
}
