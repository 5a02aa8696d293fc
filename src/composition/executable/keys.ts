import { table } from '../../adapters/cli/console.ts';
import type { ApiKeys } from '../../adapters/auth/api-keys/index.ts';
import { type ApiKeyRecord, isKeyValid, type KeyAccess } from '../../domain/principal.ts';
import { loadConfig } from '../config/load.ts';

export interface CreateKeyOptions {
  readonly name: string;
  readonly user: string;
  readonly expires?: number;
  readonly access: KeyAccess;
}

/** Makes a key. Prints only the key on standard output, so that a script can read it, and all else on standard error. */
export async function createKey(env: NodeJS.ProcessEnv, { name, user, expires, access }: CreateKeyOptions): Promise<number> {
  return await withKeys(env, async (keys) => {
    const made = await keys.create({ name, userId: user, access, ...(expires !== undefined && { expiresInMs: expires }) });
    process.stderr.write(`The key ${name} of the user ${user}; it is shown only now:\n`);
    process.stdout.write(`${made.key}\n`);
    return 0;
  });
}

export async function listKeys(env: NodeJS.ProcessEnv): Promise<number> {
  return await withKeys(env, async (keys) => {
    const records = await keys.list();
    if (records.length === 0) process.stderr.write('There is no key yet; make one with: skep keys create <name>\n');
    else process.stdout.write(table(['ID', 'NAME', 'USER', 'ACCESS', 'CREATED', 'EXPIRES', 'STATE'], records.map(rowOf)));
    return 0;
  });
}

export async function revokeKey(env: NodeJS.ProcessEnv, key: string): Promise<number> {
  return await withKeys(env, async (keys) => {
    const revoked = await keys.revoke(key);
    process.stderr.write(revoked ? `The key ${key} is revoked.\n` : `There is no valid key ${JSON.stringify(key)}; see: skep keys list\n`);
    return revoked ? 0 : 1;
  });
}

async function withKeys(env: NodeJS.ProcessEnv, use: (keys: ApiKeys) => Promise<number>): Promise<number> {
  const config = loadConfig(env);
  const [{ createSqliteStore }, { createApiKeys }, { createSystemClock }, { createSystemRandom }] = await Promise.all([
    import('../../adapters/store/sqlite/index.ts'),
    import('../../adapters/auth/api-keys/index.ts'),
    import('../../adapters/clock/system-clock.ts'),
    import('../../adapters/random/system-random.ts'),
  ]);
  // Not exclusive, since keys are managed while the server runs.
  const store = await createSqliteStore({ dataDir: config.dataDir, exclusive: false });
  try {
    return await use(createApiKeys({ keys: store.apiKeys, clock: createSystemClock(), random: createSystemRandom() }));
  } finally {
    await store.close();
  }
}

function rowOf(key: ApiKeyRecord): string[] {
  const invalid = key.revokedAt === null ? 'expired' : 'revoked';
  const state = isKeyValid(key, Date.now()) ? 'valid' : invalid;
  const expires = key.expiresAt === null ? 'never' : new Date(key.expiresAt).toISOString();
  return [key.id, key.name, key.userId, key.access, new Date(key.createdAt).toISOString(), expires, state];
}
