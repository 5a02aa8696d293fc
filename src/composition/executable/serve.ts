import { once } from 'node:events';
import { flushCompileCache } from 'node:module';
import { setTimeout as sleep } from 'node:timers/promises';
import { stopSignal } from '../../adapters/cli/console.ts';
import { createSystemClock } from '../../adapters/clock/system-clock.ts';
import { createPinoLogger, openStandardError } from '../../adapters/logger/pino-logger.ts';
import type { Skep } from '../../application/skep.ts';
import type { Store } from '../../ports/store.ts';
import { noteRuntime } from '../config/deployment-file.ts';
import { effectiveSettings } from '../config/effective-settings.ts';
import { unsetSecrets } from '../config/environment-warnings.ts';
import { omitUndefined } from '../config/field-schemas.ts';
import type { SkepConfig } from '../config/config-schema.ts';
import { readConfig } from '../config/read-config.ts';
import { chooseRuntime } from '../config/runtime-choice.ts';
import { openSkep } from '../create-skep.ts';
import { openSqliteStore } from '../wiring/adapters-module.ts';
import { dashboardText } from './dashboard-link.ts';
import { checkKey, firstScreen, setKeyText, storedKeyText } from './first-screen.ts';
import { drainMsOf, type PortProxy, startPortProxy } from './port-proxy.ts';

/** How long the first screen waits for the parts, in milliseconds. An engine that hangs must not delay it further. */
const partsTimeoutMs = 3_000;

/** Ends within the time limit even if a part hangs: the store and the runtime have all state, and the next start continues. */
export async function serve(env: NodeJS.ProcessEnv): Promise<number> {
  const stop = stopSignal();
  const config = readConfig(env);
  const destination = openStandardError(false);
  const logger = createPinoLogger({ level: config.logLevel, destination });
  stop.addEventListener('abort', () => {
    logger.info({ signal: stop.reason }, 'shutting down: active requests finish, and sandboxes stay; a second Ctrl-C stops at once');
    createSystemClock().after(config.shutdownTimeout, () => {
      logger.error({ limit_ms: config.shutdownTimeout }, 'the shutdown took too long; requests and calls that are still open are cut off');
      destination.flushSync();
      process.exit(1);
    });
  });
  try {
    await using open = new AsyncDisposableStack();
    const store = await openSqliteStore(config.dataDir, logger);
    open.defer(() => store.close());
    const runtime = await chooseRuntime(config);
    const secretWarnings = unsetSecrets(config.specs, env).map(({ detail }) => detail);
    for (const warning of [...config.warnings, ...runtime.warnings, ...secretWarnings]) logger.warn({}, warning);
    const skep = await openSkep({ ...config.options, runtime: runtime.options, store, logger });
    open.defer(() => skep.close());
    noteRuntime(config.dataDir, runtime.options.kind);
    const portProxy = await startPortProxy(skep, config);
    open.defer(() => portProxy?.server.close());
    const server = await listen(skep, config, portProxy);
    // Both drain at the same time.
    open.defer(async () => void (await Promise.all([server.close(), portProxy?.server.close()])));
    logger.info({ url: server.url, proxy_url: portProxy?.address.url ?? null }, 'listening');
    process.stdout.write(await screenOf(config, skep, store, server.url));
    // Without this, the cache of compiled code is written at the end, and a crash would lose it.
    flushCompileCache();
    if (!stop.aborted) await once(stop, 'abort');
    return 0;
  } finally {
    destination.flushSync();
  }
}

async function screenOf(config: SkepConfig, skep: Skep, store: Store, serverUrl: string): Promise<string> {
  const unanswered = { part: 'others', adapter: '-', ok: false, detail: 'have not answered yet; see GET /ready' };
  const checked = await Promise.race([skep.check(), sleep(partsTimeoutMs, [unanswered], { ref: false })]);
  const key = config.apiKey === undefined ? null : await checkKey(config.apiKey, skep.auth);
  const detail = key === null ? 'keys of the store' : 'SKEP_API_KEY and keys of the store';
  const parts = [...checked, { part: 'auth', adapter: 'api-keys', ok: key?.state !== 'failed', detail }];
  const keyText = key === null ? await storedKeyText(store.apiKeys, skep) : setKeyText(key);
  const url = config.publicUrl ?? serverUrl;
  return firstScreen(config, url, parts, [...(await dashboardText(config, url, skep.auth.keys)), ...keyText]);
}

async function listen(
  skep: Skep, config: SkepConfig, portProxy: PortProxy | null,
): Promise<{ readonly url: string; close(): Promise<void> }> {
  const [{ createHttpServer }, { e2b }] = await Promise.all([
    import('../../adapters/http/index.ts'), import('../../adapters/e2b/index.ts'),
  ]);
  return await createHttpServer(skep, {
    host: config.host,
    port: config.port,
    product: config.product,
    requestsPerMinute: config.requestsPerMinute,
    streamsPerKey: config.streamsPerKey,
    ...omitUndefined({
      publicUrl: config.publicUrl, trustProxy: config.trustProxy, corsOrigins: config.corsOrigins, proxy: portProxy?.address,
    }),
    ...(config.dashboard === 'off' && { dashboard: false }),
    settings: effectiveSettings(config),
    keepAliveTimeoutMs: config.keepAliveTimeout,
    drainMs: drainMsOf(config),
    mounts: [e2b],
  });
}
