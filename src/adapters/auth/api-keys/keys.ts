import type { ApiKeyRecord, KeyAccess } from '../../../domain/principal.ts';
import type { ApiKeyStore } from '../../../ports/api-key-store.ts';
import type { Clock } from '../../../ports/clock.ts';
import type { Random } from '../../../ports/random.ts';
import { digestOf } from './digest.ts';

/** The user of the static key, and of every key that is made for nobody in particular: what one made, the next one sees. */
export const defaultUser = 'default';

export interface NewApiKey {
  /** 1 to 100 characters, none of them a control character; no other key that is not revoked has it. */
  readonly name: string;
  /** Owner of what the key creates; `default` unless told. */
  readonly userId?: string;
  /** `full` unless told. */
  readonly access?: KeyAccess;
  /** Up to 100 years; for ever unless told. */
  readonly expiresInMs?: number;
}

export interface CreatedApiKey {
  /** The key itself, which is kept nowhere. */
  readonly key: string;
  readonly record: ApiKeyRecord;
}

export interface ApiKeys {
  /** Makes a key. Rejects with {@link ApiKeyRefused} if its name is taken, or a value is not of the form. */
  create(key: NewApiKey): Promise<CreatedApiKey>;
  /** Every key, oldest first, expired and revoked ones too. */
  list(): Promise<readonly ApiKeyRecord[]>;
  /** Revokes the key with this id or name, at once. False when there is none that is not revoked. */
  revoke(idOrName: string): Promise<boolean>;
}

export interface ApiKeysOptions {
  readonly keys: ApiKeyStore;
  readonly clock: Clock;
  readonly random: Random;
}

const marker = Symbol.for('skep.api-key-refused');

/** Why a key is not made, in words for whoever asked for it. */
export class ApiKeyRefused extends Error {
  readonly [marker] = true;

  constructor(message: string) {
    super(message);
    this.name = 'ApiKeyRefused';
  }
}

/** Recognises a refusal by its marker, so that two copies of the package understand each other's. */
export function isApiKeyRefused(error: unknown): error is ApiKeyRefused {
  return typeof error === 'object' && error !== null && marker in error;
}

/** Makes, lists and revokes the keys of a store. */
export function createApiKeys({ keys, clock, random }: ApiKeysOptions): ApiKeys {
  return {
    async create({ name, userId = defaultUser, access = 'full', expiresInMs }) {
      requireLabel('name', name);
      requireLabel('user', userId);
      requireLifetime(expiresInMs);
      const now = clock.now();
      const key = `skep_${random.secret()}`;
      const record: ApiKeyRecord = {
        id: random.id('key'),
        name,
        userId,
        access,
        hash: digestOf(key),
        createdAt: now,
        expiresAt: expiresInMs === undefined ? null : now + expiresInMs,
        revokedAt: null,
      };
      if (!(await keys.insert(record))) {
        throw new ApiKeyRefused(`There is a key with the name ${JSON.stringify(name)} already; revoke it first, or choose another name.`);
      }
      return { key, record };
    },
    list: () => keys.list(),
    revoke: (idOrName) => keys.revoke(idOrName, clock.now()),
  };
}

function requireLabel(what: string, value: string): void {
  if (value.trim() === '' || value.length > 100 || /\p{Cc}/u.test(value)) {
    throw new ApiKeyRefused(`The key's ${what} must have 1 to 100 characters, none of them a control character.`);
  }
}

const longestLifetimeMs = 100 * 365 * 24 * 60 * 60 * 1000;

function requireLifetime(expiresInMs: number | undefined): void {
  if (expiresInMs === undefined) return;
  if (!Number.isInteger(expiresInMs) || expiresInMs < 1 || expiresInMs > longestLifetimeMs) {
    throw new ApiKeyRefused(`The key's lifetime must be a whole number of milliseconds, from 1 to 100 years.`);
  }
}
