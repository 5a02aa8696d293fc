import { once } from 'node:events';
import { pino } from 'pino';
import { stopSignal } from '../../adapters/cli/console.ts';
import { createPinoLogger } from '../../adapters/logger/pino/index.ts';
import type { Skep } from '../../application/skep.ts';
import type { SkepConfig } from '../config/file-schema.ts';
import { noteRuntime } from '../config/deployment-file.ts';
import { unsetSecrets } from '../config/environment-warnings.ts';
import { loadConfig } from '../config/load.ts';
import { choiceFacts, chooseRuntime } from '../config/runtime-choice.ts';
import { createSkep } from '../create-skep.ts';
import { firstKey, keyState } from './api-key-state.ts';
import { firstScreen } from './first-screen.ts';

/** Runs the server until the process is asked to end. */
export async function serve(env: NodeJS.ProcessEnv): Promise<number> {
  const stop = stopSignal();
  const config = loadConfig(env);
  const destination = pino.destination({ fd: 2, sync: false });
  const logger = createPinoLogger({ level: config.logLevel, destination });
  try {
    await using open = new AsyncDisposableStack();
    const { createSqliteStore } = await import('../../adapters/store/sqlite/index.ts');
    const store = await createSqliteStore({ dataDir: config.dataDir });
    open.defer(() => store.close());
    const runtime = await chooseRuntime(config, choiceFacts(config, { hasSandboxes: (await store.sandboxes.scan(null, 1)).length > 0 }));
    for (const warning of [...config.warnings, ...runtime.warnings, ...unsetSecrets(config.specs, env)]) logger.warn({}, warning);
    const skep = await createSkep({ ...config.options, runtime: runtime.options, store, logger });
    open.defer(() => skep.close());
    noteRuntime(config.dataDir, runtime.options.kind);
    const server = await listen(skep, config);
    open.defer(() => server.close());

    const key = config.apiKey === undefined ? await firstKey(store.apiKeys, skep) : await keyState(config.apiKey, skep.auth);
    process.stdout.write(firstScreen({ config, url: config.publicUrl ?? server.url, parts: await skep.check(), key }));
    logger.info({ url: server.url }, 'listening');
    if (!stop.aborted) await once(stop, 'abort');
    logger.info({ signal: stop.reason }, 'draining: no new work is taken, requests finish, sandboxes stay');
    return 0;
  } finally {
    destination.flushSync();
  }
}

async function listen(skep: Skep, config: SkepConfig): Promise<{ readonly url: string; close(): Promise<void> }> {
  const { createHttpServer } = await import('../../adapters/http/index.ts');
  return await createHttpServer(skep, {
    host: config.host,
    port: config.port,
    product: config.product,
    ...(config.publicUrl !== undefined && { publicUrl: config.publicUrl }),
    requestsPerMinute: config.requestsPerMinute,
  });
}
