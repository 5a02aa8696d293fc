import { once } from 'node:events';
import { flushCompileCache } from 'node:module';
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { stopSignal } from '../../adapters/cli/console.ts';
import type { ProxyAddress } from '../../adapters/http/index.ts';
import { browserDomain } from '../../adapters/http/port-links.ts';
import { createPinoLogger } from '../../adapters/logger/pino-logger.ts';
import type { ProxyServer } from '../../adapters/proxy/index.ts';
import { isLoopback } from '../../adapters/shared/plain-http.ts';
import type { Skep } from '../../application/skep.ts';
import type { Store } from '../../ports/store.ts';
import { noteRuntime } from '../config/deployment-file.ts';
import { effectiveSettings } from '../config/effective-settings.ts';
import { unsetSecrets } from '../config/environment-warnings.ts';
import { omitUndefined } from '../config/field-schemas.ts';
import type { SkepConfig } from '../config/config-schema.ts';
import { readConfig } from '../config/read-config.ts';
import { chooseRuntime } from '../config/runtime-choice.ts';
import { proxyPortOf } from '../config/settings.ts';
import { openSkep } from '../create-skep.ts';
import { openSqliteStore } from '../wiring/adapters-module.ts';
import { dashboardText } from './dashboard-link.ts';
import { checkKey, firstScreen, setKeyText, storedKeyText } from './first-screen.ts';

/** How long the first screen waits for the parts, in milliseconds. An engine that hangs must not delay it further. */
const partsTimeoutMs = 3_000;

/** Ends within the time limit even if a part hangs: the store and the runtime have all state, and the next start continues. */
export async function serve(env: NodeJS.ProcessEnv): Promise<number> {
  const stop = stopSignal();
  const config = readConfig(env);
  const destination = pino.destination({ fd: 2, sync: false });
  const logger = createPinoLogger({ level: config.logLevel, destination });
  stop.addEventListener('abort', () => {
    logger.info({ signal: stop.reason }, 'shutting down: active requests finish, and sandboxes stay; a second Ctrl-C stops at once');
    setTimeout(() => {
      logger.error({ limit_ms: config.shutdownTimeout }, 'the shutdown took too long; requests and calls that are still open are cut off');
      destination.flushSync();
      process.exit(1);
    }, config.shutdownTimeout).unref();
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
    const proxy = await listenForPorts(skep, config);
    open.defer(() => proxy?.server.close());
    const server = await listen(skep, config, proxy);
    // Both drain at the same time.
    open.defer(async () => void (await Promise.all([server.close(), proxy?.server.close()])));
    logger.info({ url: server.url, proxy_url: proxy?.address.url ?? null }, 'listening');
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

/** Returns how long the servers wait for active requests. The rest of the time is for closing the other parts. */
function drainMsOf({ shutdownTimeout }: SkepConfig): number {
  return Math.min(10_000, shutdownTimeout / 2);
}

type Listening = { readonly server: ProxyServer; readonly address: ProxyAddress } | null;

async function listenForPorts(skep: Skep, config: SkepConfig): Promise<Listening> {
  const port = proxyPortOf(config);
  if (port === null) return null;
  const { createProxyServer } = await import('../../adapters/proxy/index.ts');
  const { host, connectionsPerSandbox, proxyUrl, trustProxy } = config;
  // On loopback there is a default, with which browsers give each port its own origin.
  const domain = config.proxyDomain ?? (isLoopback(host) && proxyUrl === undefined ? browserDomain : undefined);
  const given = omitUndefined({ domain, trustProxy, url: proxyUrl });
  const server = await createProxyServer(skep, { host, port, connectionsPerSandbox, drainMs: drainMsOf(config), ...given });
  return { server, address: { url: server.url, domain } };
}

async function listen(skep: Skep, config: SkepConfig, proxy: Listening): Promise<{ readonly url: string; close(): Promise<void> }> {
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
      publicUrl: config.publicUrl, trustProxy: config.trustProxy, corsOrigins: config.corsOrigins, proxy: proxy?.address,
    }),
    ...(config.dashboard === 'off' && { dashboard: false }),
    settings: effectiveSettings(config),
    drainMs: drainMsOf(config),
    mounts: [e2b],
  });
}
