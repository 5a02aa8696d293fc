import { type JsonOption, print } from '../../adapters/cli/console.ts';
import { table } from '../../adapters/cli/tables.ts';
import { presentKey, presentNewKey } from '../../adapters/http/routes/keys.ts';
import { commandName } from '../../client/command-name.ts';
import { Failure, isFailure } from '../../domain/failure.ts';
import type { KeyAccess } from '../../domain/principal.ts';
import type { KeyFormat } from '../../domain/api-key.ts';
import type { ApiKeys } from '../../ports/api-keys.ts';
import type { SkepConfig } from '../config/config-schema.ts';
import { readConfig } from '../config/read-config.ts';
import { storeCreatedText, storeWarningText } from '../store-warnings.ts';

export interface CreateKeyOptions extends JsonOption {
  readonly name: string;
  readonly user: string;
  readonly expires?: number;
  readonly format: KeyFormat;
  readonly access: KeyAccess;
  readonly repositories?: readonly string[];
}

/** Creates a key. For scripts, prints the key alone on standard output, or JSON as the API has it. */
export async function createKey(env: NodeJS.ProcessEnv, options: CreateKeyOptions): Promise<number> {
  const { name, user, expires, access, format, repositories = null } = options;
  return await withKeys(env, async (keys) => {
    const lifetime = expires === undefined ? {} : { expiresInMs: expires };
    const made = await keys.create({ name, userId: user, access, format, repositories, ...lifetime }).catch(rethrowWithOptionNames);
    process.stderr.write(`The key ${name} of the user ${user}. It is not shown again:\n`);
    print(options, presentNewKey(made), `${made.key}\n`);
    return 0;
  });
}

/** The options of the command, by the arguments that they set. */
const optionNames: Readonly<Record<string, string>> = {
  name: '<name>', userId: '--user', repositories: '--repositories', expiresInMs: '--expires',
};

function rethrowWithOptionNames(error: unknown): never {
  if (!isFailure(error) || error.code !== 'invalid_request') throw error;
  const problems = error.context.problems.map(({ argument, reason }) => ({ argument: optionNames[argument] ?? argument, reason }));
  throw new Failure('invalid_request', { problems });
}

const columns = ['ID', 'NAME', 'USER', 'ACCESS', 'REPOSITORIES', 'CREATED', 'EXPIRES', 'STATE'];

export async function listKeys(env: NodeJS.ProcessEnv, options: JsonOption): Promise<number> {
  return await withKeys(env, async (keys) => {
    const items = (await keys.list()).map((record) => presentKey(record, null, Date.now()));
    const rows = items.map(({ id, name, user_id: user, access, repositories, created_at: created, expires_at: expires, state }) =>
      [id, name, user, access, repositories?.join(',') ?? 'all', created, expires ?? 'never', state]);
    if (rows.length === 0) process.stderr.write(`There is no key yet. Create one with: ${commandName} keys create <name>\n`);
    print(options, { items }, rows.length === 0 ? '' : table(columns, rows));
    return 0;
  });
}

export async function revokeKey(env: NodeJS.ProcessEnv, key: string, options: JsonOption): Promise<number> {
  return await withKeys(env, async (keys) => {
    const revoked = await keys.revoke(key);
    print(options, { name_or_id: key, revoked }, '');
    const none = `There is no valid key ${JSON.stringify(key)}. See: ${commandName} keys list\n`;
    process.stderr.write(revoked ? `The key ${key} is revoked.\n` : none);
    return revoked ? 0 : 1;
  });
}

export async function withKeys(
  env: NodeJS.ProcessEnv, use: (keys: ApiKeys, config: SkepConfig) => Promise<number>,
): Promise<number> {
  const config = readConfig(env);
  const [{ createSqliteStore }, { createApiKeys }, { createSystemClock }, { createSystemRandom }] = await Promise.all([
    import('../../adapters/store/sqlite/index.ts'),
    import('../../adapters/auth/api-keys/index.ts'),
    import('../../adapters/clock/system-clock.ts'),
    import('../../adapters/random/system-random.ts'),
  ]);
  // Not exclusive, because the server may be running.
  const store = await createSqliteStore({
    dataDir: config.dataDir,
    exclusive: false,
    warn: (warning) => process.stderr.write(`${storeWarningText(warning)}\n`),
    onCreated: (path) => process.stderr.write(`${storeCreatedText(path)}\n`),
  });
  await using open = new AsyncDisposableStack();
  open.defer(() => store.close());
  return await use(createApiKeys({ keys: store.apiKeys, clock: createSystemClock(), random: createSystemRandom() }), config);
}
