import { pino } from 'pino';
import type { Skep } from '../../application/skep.ts';
import { createPinoLogger } from '../../adapters/pino/index.ts';
import { createSkep } from '../create-skep.ts';
import { loadConfig, type SkepConfig } from '../config/load.ts';
import { toDeployment } from '../deployment.ts';
import { firstKey } from '../first-key.ts';
import { firstScreen } from '../first-screen.ts';
import { untilSignal } from '../until-signal.ts';

/** Runs the server until it is told to end. */
export async function serve(env: Readonly<Record<string, string | undefined>>): Promise<number> {
  const stop = untilSignal();
  const config = loadConfig(env);
  const destination = pino.destination({ fd: 2, sync: false });
  const logger = createPinoLogger({ level: config.logLevel, destination });
  try {
    const deployment = toDeployment(config, logger);
    for (const warning of deployment.warnings) logger.warn({}, warning);

    await using open = new AsyncDisposableStack();
    const { createSqliteStore } = await import('../../adapters/sqlite/index.ts');
    const store = await createSqliteStore({ dataDir: config.dataDir });
    open.defer(() => store.close());
    const skep = await createSkep({ ...deployment.options, store });
    open.defer(() => skep.close());
    const server = await listen(skep, config);
    open.defer(() => server.close());

    const madeKey = config.apiKey === undefined ? await firstKey(store.apiKeys, skep) : null;
    process.stdout.write(firstScreen({ config, url: config.publicUrl ?? server.url, parts: await skep.check(), madeKey }));
    logger.info({ url: server.url }, 'listening');
    logger.info({ signal: await stop }, 'draining: no new work, requests finish, sandboxes stay');
    return 0;
  } finally {
    destination.flushSync();
  }
}

async function listen(skep: Skep, config: SkepConfig): Promise<{ readonly url: string; close(): Promise<void> }> {
  const { createHttpServer } = await import('../../adapters/express/index.ts');
  return await createHttpServer(skep, {
    host: config.host,
    port: config.port,
    product: config.product,
    ...(config.publicUrl !== undefined && { publicUrl: config.publicUrl }),
    requestsPerMinute: config.limits.requestsPerMinute,
  });
}
