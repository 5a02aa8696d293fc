import { createSkep } from '../create-skep.ts';
import { loadConfig, type SkepConfig } from '../config/load.ts';
import { settings } from '../config/settings.ts';
import { toDeployment } from '../deployment.ts';
import { explain } from '../explain.ts';
import { packageVersion } from '../package-info.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** Says what is configured and what answers; 1 when something does not. Changes nothing. */
export async function doctor(env: Environment): Promise<number> {
  process.stdout.write(`Skep ${packageVersion()} on Node ${process.versions.node}, ${process.platform}\n\n`);
  let config: SkepConfig;
  try {
    config = loadConfig(env);
  } catch (error) {
    process.stdout.write(`${explain(error)}\n`);
    return 1;
  }
  process.stdout.write(`Configuration\n${configLines(config, env)}\n`);
  const lines = await checkLines(config);
  process.stdout.write(`Checks\n${lines.map(({ ok, text }) => `  ${ok ? 'ok     ' : 'NOT OK '} ${text}\n`).join('')}`);
  return lines.every(({ ok }) => ok) ? 0 : 1;
}

interface CheckLine {
  readonly ok: boolean;
  readonly text: string;
}

function configLines(config: SkepConfig, env: Environment): string {
  const values: Readonly<Record<string, unknown>> = { ...config };
  const lines = Object.entries(settings).map(([name, { variable, key }]) => {
    const shown = shownValue(values[name], key === null);
    return `  ${variable.padEnd(22)} ${shown}${(env[variable] ?? '') === '' ? '' : '   (environment)'}`;
  });
  const { specs, limits } = config;
  lines.push(`  specs                  ${specs === null ? 'the ready-made ones' : specs.map(({ id }) => id).join(', ')}`);
  lines.push(`  limits                 running_per_owner ${limits.runningPerOwner ?? '-'}, running ${limits.running ?? '-'}, requests_per_minute ${limits.requestsPerMinute ?? '-'}`);
  return `${lines.join('\n')}\n`;
}

function shownValue(value: unknown, secret: boolean): string {
  if (value === undefined) return '-';
  if (secret) return '(set)';
  return Array.isArray(value) ? value.join(',') : JSON.stringify(value).replace(/^"|"$/g, '');
}

/** Asks every part. The store and the runtime's folder may belong to a server that runs, so neither is opened for good. */
async function checkLines(config: SkepConfig): Promise<CheckLine[]> {
  const { createSilentLogger } = await import('../../adapters/memory/index.ts');
  const lines: CheckLine[] = config.warnings.map((text) => ({ ok: true, text: `warning: ${text}` }));
  try {
    const { options, warnings } = toDeployment({ ...config, warnings: [] }, createSilentLogger());
    lines.push(...warnings.map((text) => ({ ok: true, text: `warning: ${text}` })));
    const { dataDir: _, ...parts } = options;
    const skep = await createSkep({ ...parts, store: { kind: 'memory' } });
    try {
      for (const { part, adapter, ok, detail } of await skep.check()) {
        if (part !== 'store') lines.push({ ok, text: `${part} ${adapter}: ${detail}` });
      }
    } finally {
      await skep.close();
    }
  } catch (error) {
    lines.push({ ok: false, text: explain(error) });
  }
  lines.push(await storeLine(config));
  lines.push(await portLine(config));
  return lines;
}

async function storeLine({ dataDir }: SkepConfig): Promise<CheckLine> {
  try {
    const { createSqliteStore } = await import('../../adapters/sqlite/index.ts');
    const store = await createSqliteStore({ dataDir, exclusive: false });
    try {
      const { ok, detail } = await store.check();
      const keys = (await store.apiKeys.list()).length;
      return { ok, text: `store sqlite in ${dataDir}: ${detail}; ${keys} keys` };
    } finally {
      await store.close();
    }
  } catch (error) {
    return { ok: false, text: `store sqlite in ${dataDir}: ${explain(error)}` };
  }
}

async function portLine({ host, port }: SkepConfig): Promise<CheckLine> {
  const { createServer } = await import('node:net');
  const { promise, resolve } = Promise.withResolvers<CheckLine>();
  const server = createServer();
  server.once('error', ({ code }: NodeJS.ErrnoException) => {
    const why = code === 'EADDRINUSE' ? 'in use: a server runs there already, or set SKEP_PORT to another port' : `can't be listened on (${code ?? 'unknown error'})`;
    resolve({ ok: code === 'EADDRINUSE', text: `address ${host}:${port} ${why}` });
  });
  server.listen(port, host, () => server.close(() => resolve({ ok: true, text: `address ${host}:${port} is free` })));
  return await promise;
}

