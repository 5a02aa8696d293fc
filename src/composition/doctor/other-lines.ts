import { createServer } from 'node:net';
import { createMemoryStore } from '../../adapters/memory/index.ts';
import { createSystemClock } from '../../adapters/system/index.ts';
import type { Store } from '../../ports/store.ts';
import { openGitProviders } from '../adapters/git.ts';
import type { SkepConfig } from '../config/config.ts';
import type { SkepOptions } from '../options.ts';
import { notOk, ok, type Line } from './line.ts';

/** Whether each git provider answers. What they learn is kept nowhere. */
export async function gitLines(options: SkepOptions): Promise<Line[]> {
  await using closers = new AsyncDisposableStack();
  const providers = await openGitProviders(options, createMemoryStore(), createSystemClock(), closers);
  return await Promise.all(
    providers.map(async (provider) => {
      const { ok: answers, detail } = await provider.check();
      return (answers ? ok : notOk)(`git ${provider.name}: ${detail}`);
    }),
  );
}

export async function storeLine({ dataDir }: SkepConfig, store: Store | null): Promise<Line> {
  if (store === null) return ok(`store sqlite in ${dataDir}: nothing there yet; the first start makes it`);
  const { ok: answers, detail } = await store.check();
  const keys = answers ? `; ${(await store.apiKeys.list()).length} keys` : '';
  return (answers ? ok : notOk)(`store sqlite in ${dataDir}: ${detail}${keys}`);
}

/** Whether each secret that an agent is to have is set; never what it is. */
export function secretLines({ specs }: SkepConfig, env: Readonly<Record<string, string | undefined>>): Line[] {
  return (specs ?? []).flatMap(({ id, agent }) =>
    (agent?.secrets ?? []).map((name) => ((env[name] ?? '') === '' ? notOk(`spec ${id}: its agent is to have the secret ${name}, which is not set in the environment`) : ok(`spec ${id}: the secret ${name} is set`))),
  );
}

export async function addressLine({ host, port }: SkepConfig): Promise<Line> {
  const { promise, resolve } = Promise.withResolvers<Line>();
  const server = createServer();
  server.once('error', ({ code }: NodeJS.ErrnoException) => {
    const taken = code === 'EADDRINUSE';
    resolve(taken ? ok(`address ${host}:${port} in use: a server runs there already, or set SKEP_PORT to another port`) : notOk(`address ${host}:${port} can't be listened on (${code ?? 'unknown error'})`));
  });
  server.listen(port, host, () => server.close(() => resolve(ok(`address ${host}:${port} is free`))));
  return await promise;
}
