import type { ApiKeys } from '../../adapters/auth/api-keys/index.ts';
import { type ApiKeyRecord, isKeyValid, type KeyAccess } from '../../domain/principal.ts';
import { loadConfig } from '../config/load.ts';

export interface CreateKeyOptions {
  readonly name: string;
  readonly user: string;
  readonly expires?: number;
  readonly access: KeyAccess;
}

/** Makes a key; prints it alone on standard output, and all else on standard error, so that a script can take it. */
export async function createKey(env: NodeJS.ProcessEnv, { name, user, expires, access }: CreateKeyOptions): Promise<number> {
  return await withKeys(env, async (keys) => {
    const made = await keys.create({ name, userId: user, access, ...(expires !== undefined && { expiresInMs: expires }) });
    process.stderr.write(`The key ${name} of the user ${user}; it is shown this once:\n`);
    process.stdout.write(`${made.key}\n`);
    return 0;
  });
}

export async function listKeys(env: NodeJS.ProcessEnv): Promise<number> {
  return await withKeys(env, async (keys) => {
    const records = await keys.list();
    if (records.length === 0) process.stderr.write('There is no key yet; make one with: skep keys create <name>\n');
    else process.stdout.write(table(records));
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
  // Not exclusive: keys are managed while the server runs.
  const store = await createSqliteStore({ dataDir: config.dataDir, exclusive: false });
  try {
    return await use(createApiKeys({ keys: store.apiKeys, clock: createSystemClock(), random: createSystemRandom() }));
  } finally {
    await store.close();
  }
}

function table(records: readonly ApiKeyRecord[]): string {
  const now = Date.now();
  const rows = [
    ['ID', 'NAME', 'USER', 'ACCESS', 'CREATED', 'EXPIRES', 'STATE'],
    ...records.map((key) => [key.id, key.name, key.userId, key.access, time(key.createdAt), time(key.expiresAt), state(key, now)]),
  ];
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? [];
  return rows.map((row) => `${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ').trimEnd()}\n`).join('');
}

function state(key: ApiKeyRecord, now: number): string {
  if (key.revokedAt !== null) return 'revoked';
  return isKeyValid(key, now) ? 'valid' : 'expired';
}

function time(ms: number | null): string {
  return ms === null ? 'never' : new Date(ms).toISOString();
}
