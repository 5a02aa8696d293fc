import type { ApiKeyRecord } from '../../../domain/principal.ts';
import type { ApiKeyStore } from '../../../ports/api-key-store.ts';
import { type StoreState, whileOpen } from './state.ts';

export function createMemoryApiKeys(state: StoreState): ApiKeyStore {
  const records = new Map<string, ApiKeyRecord>();
  const all = (): ApiKeyRecord[] => [...records.values()];
  const usable = (): ApiKeyRecord[] => all().filter(({ revokedAt }) => revokedAt === null);

  return {
    insert: (key) =>
      whileOpen(state, () => {
        const taken = usable().some(({ name }) => name === key.name) || all().some(({ id, hash }) => id === key.id || hash === key.hash);
        if (!taken) records.set(key.id, key);
        return !taken;
      }),

    findByHash: (hash) => whileOpen(state, () => all().find((key) => key.hash === hash) ?? null),

    list: () =>
      whileOpen(state, () => all().toSorted((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1))),

    revoke: (idOrName, revokedAt) =>
      whileOpen(state, () => {
        // An id names one key for ever, a name only for now: the id goes first.
        const key = usable().find(({ id }) => id === idOrName) ?? usable().find(({ name }) => name === idOrName);
        if (key !== undefined) records.set(key.id, { ...key, revokedAt });
        return key !== undefined;
      }),
  };
}
