import { createServer } from 'node:net';
import { createSystemClock } from '../../../adapters/clock/system-clock.ts';
import { createInMemoryStore, type SqliteLook } from '../../../adapters/store/sqlite/index.ts';
import { openAuth } from '../../wiring/adapters/auth.ts';
import { openGitProviders } from '../../wiring/adapters/git.ts';
import type { SkepConfig } from '../../config/config.ts';
import { listenProblem } from '../explain.ts';
import type { SkepOptions } from '../../options.ts';
import { unsetSecrets } from '../../config/variables.ts';
import { keyLine, keyState } from '../key-state.ts';
import { note, notOk, ok, type Line } from './line.ts';
import type { Environment } from '../../config/environment.ts';

/** Whether each git provider answers. What they learn is kept nowhere. */
export async function gitLines(options: SkepOptions): Promise<Line[]> {
  await using closers = new AsyncDisposableStack();
  const store = createInMemoryStore();
  closers.defer(() => store.close());
  const providers = await openGitProviders(options, store, createSystemClock(), closers);
  return await Promise.all(
    providers.map(async (provider) => {
      const { ok: answers, detail } = await provider.check();
      return (answers ? ok : notOk)(`git ${provider.name}: ${detail}`);
    }),
  );
}

/** What the data folder has, and what the key that is set is to it. */
export async function storeLines({ dataDir, apiKey }: SkepConfig, look: SqliteLook): Promise<Line[]> {
  const where = `store sqlite in ${dataDir}`;
  if (look.kind === 'none') return [ok(`${where}: nothing there yet; the first start makes it`)];
  if (look.kind === 'older') return [note(`${where}: of an older version (schema ${look.schema}, this version's is ${look.current}); \`skep serve\` brings it up to date`)];
  const { ok: answers, detail } = await look.store.check();
  if (!answers) return [notOk(`${where}: ${detail}`)];
  const { length } = await look.store.apiKeys.list();
  const lines = [ok(`${where}: ${detail}; ${length === 1 ? 'one key' : `${length} keys`}`)];
  if (apiKey === undefined) return lines;
  const auth = await openAuth({ auth: { kind: 'api-keys', staticKey: apiKey } }, look.store, createSystemClock());
  return [...lines, keyLine(await keyState(apiKey, auth))];
}

/** Whether each secret that an agent is to have is set; never what it is. */
export function secretLines({ specs }: SkepConfig, env: Environment): Line[] {
  const set = (specs ?? []).flatMap(({ id, agent }) => (agent?.secrets ?? []).filter((name) => (env[name] ?? '') !== '').map((name) => ok(`spec ${id}: the secret ${name} is set`)));
  return [...set, ...unsetSecrets(specs, env).map(notOk)];
}

export async function addressLine({ host, port }: SkepConfig): Promise<Line> {
  const { promise, resolve } = Promise.withResolvers<Line>();
  const server = createServer();
  server.once('error', ({ code }: NodeJS.ErrnoException) => {
    const taken = code === 'EADDRINUSE';
    resolve(taken ? ok(`address ${host}:${port} in use: a server runs there already, or set SKEP_PORT to another port`) : notOk(`address ${host}:${port}: ${listenProblem(code ?? 'unknown error')}`));
  });
  server.listen(port, host, () => server.close(() => resolve(ok(`address ${host}:${port} is free`))));
  return await promise;
}
