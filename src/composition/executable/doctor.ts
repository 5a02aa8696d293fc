import { createServer } from 'node:net';
import { createSystemClock } from '../../adapters/clock/system-clock.ts';
import { createMemoryStore } from '../../adapters/store/memory/store.ts';
import type { SqliteLook } from '../../adapters/store/sqlite/index.ts';
import type { SandboxSpec } from '../../domain/sandbox-spec.ts';
import type { SkepConfig } from '../config/config.ts';
import { type Environment, unsetSecrets } from '../config/environment.ts';
import { loadConfig } from '../config/load.ts';
import { settings } from '../config/settings.ts';
import { toDeployment } from '../config/skep-options.ts';
import type { SkepOptions } from '../options.ts';
import { openAuth } from '../wiring/adapters/auth.ts';
import { openGitProviders } from '../wiring/adapters/git.ts';
import { keyLine, keyState } from './api-key-state.ts';
import { type Line, note, notOk, ok, printed } from './check-line.ts';
import { explain, listenProblem } from './explain-error.ts';
import { packageVersion } from './package-info.ts';
import { runtimeLines } from './runtime-checks.ts';

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
  process.stdout.write(`Configuration\n${configText(config, env)}\n`);
  const lines = await checkLines(config, env);
  process.stdout.write(`Checks\n${lines.map(printed).join('')}`);
  return lines.some(({ state }) => state === 'not ok') ? 1 : 0;
}

/** Asks every part. The store may belong to a server that runs, or be of another version, so it is only looked into. */
async function checkLines(config: SkepConfig, env: Environment): Promise<Line[]> {
  await using open = new AsyncDisposableStack();
  let look: SqliteLook = { kind: 'none' };
  const lines = config.warnings.map((text) => note(`warning: ${text}`));
  const part = async (name: string, look: () => Promise<Line | Line[]>): Promise<void> => {
    try {
      lines.push(...[await look()].flat());
    } catch (error) {
      lines.push(notOk(`${name}: ${explain(error)}`));
    }
  };
  await part('store', async () => {
    const { lookIntoSqlite } = await import('../../adapters/store/sqlite/index.ts');
    look = await lookIntoSqlite(config.dataDir);
    if (look.kind === 'current') open.adopt(look.store, (opened) => opened.close());
    return await storeLines(config, look);
  });
  await part('git', async () => await gitLines(toDeployment(config, silent)));
  await part('runtime', async () => await runtimeLines(config, { hasSandboxes: await hasSandboxes(look) }));
  lines.push(...secretLines(config, env), await addressLine(config));
  return lines;
}

async function hasSandboxes(look: SqliteLook): Promise<boolean> {
  if (look.kind === 'current') return (await look.store.sandboxes.scan(null, 1)).length > 0;
  return look.kind === 'older' && look.hasSandboxes;
}

const silent = { debug() {}, info() {}, warn() {}, error() {} };

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

/** What is configured, and what of it comes from the environment; no secret. */
export function configText(config: SkepConfig, env: Environment): string {
  const values: Readonly<Record<string, unknown>> = { ...config };
  const width = 2 + Math.max(...Object.values(settings).map(({ variable }) => variable.length));
  const line = (name: string, text: string): string => `  ${name.padEnd(width)}${text}\n`;
  const lines = Object.entries(settings).map(([name, { variable, key }]) =>
    line(variable, `${shownValue(values[name], key === null)}${(env[variable] ?? '') === '' ? '' : '   (environment)'}`),
  );
  const { specs, limits, starts, events } = config;
  return [
    ...lines,
    line('specs', specs === null ? 'the ready-made one' : specs.map(specText).join(', ')),
    line('limits', `running_per_owner ${or(limits.runningPerOwner)}, running ${or(limits.running)}, existing_per_owner ${or(limits.existingPerOwner)}, existing ${or(limits.existing)}, when_full ${limits.whenFull}, requests_per_minute ${or(limits.requestsPerMinute)}`),
    line('starts', `at_once ${starts.atOnce ?? 'twice the number of cores'}`),
    line('events', `keep_for ${events.keepForMs / 86_400_000} days`),
  ].join('');
}

const or = (value: number | null): string => (value === null ? '-' : String(value));

function specText({ id, pool, agent }: SandboxSpec): string {
  const extras = [...(pool.size > 0 ? [`pool of ${pool.size}`] : []), ...(agent === null ? [] : [`agent ${agent.command[0]}`])];
  return extras.length === 0 ? id : `${id} (${extras.join(', ')})`;
}

function shownValue(value: unknown, secret: boolean): string {
  if (value === undefined) return '-';
  if (secret) return '(set)';
  return Array.isArray(value) ? value.join(',') : JSON.stringify(value).replace(/^"|"$/g, '');
}
