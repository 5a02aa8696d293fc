import { createServer } from 'node:net';
import { z } from 'zod';
import { localUrl } from '../../adapters/cli/console.ts';
import { packageVersion } from '../../adapters/shared/package-version.ts';
import type { SqliteLook } from '../../adapters/store/sqlite/index.ts';
import { duration } from '../../adapters/shared/status-and-error-message-parts.ts';
import { sentenceOf } from '../../adapters/shared/status-and-error-messages.ts';
import { inSnakeCase } from '../../adapters/shared/letter-case.ts';
import { defaultKeepEventsForMs } from '../../application/events/events.ts';
import { commandName } from '../../client/command-name.ts';
import { unlimitedConversations } from '../../domain/conversation-limits.ts';
import { unlimited } from '../../domain/sandbox-limits.ts';
import { defaultQuarantineForMs, quarantineOwner } from '../../domain/quarantine.ts';
import type { Sandbox } from '../../domain/sandbox.ts';
import type { SandboxSpec } from '../../domain/sandbox-spec.ts';
import type { SkepConfig } from '../config/file-schema.ts';
import { unsetSecrets } from '../config/environment-warnings.ts';
import { readConfig } from '../config/read-config.ts';
import { settings } from '../config/settings.ts';
import { createContainer, resolve } from '../create-skep.ts';
import { all, tokens } from '../wiring/tokens.ts';
import { keyLine } from './api-key-lines.ts';
import { type Line, note, notOk, ok, printed } from './check-line.ts';
import { explain, listenProblem } from './explain-error.ts';
import { runtimeLines } from './runtime-checks.ts';

/** Prints the configuration and whether each part answers. Returns 1 if one does not. Changes nothing. */
export async function doctor(env: NodeJS.ProcessEnv): Promise<number> {
  process.stdout.write(`Skep ${packageVersion()} on Node ${process.versions.node}, ${process.platform}\n\n`);
  let config: SkepConfig;
  try {
    config = readConfig(env);
  } catch (error) {
    process.stdout.write(`${explain(error)}\n`);
    return 1;
  }
  process.stdout.write(`Configuration\n${configText(config, env)}\n`);
  const lines = await checkLines(config, env);
  process.stdout.write(`Checks\n${lines.map(printed).join('')}`);
  return lines.some(({ state }) => state === 'not ok') ? 1 : 0;
}

/** Checks every part. The store may be in use by a server, or of another version, so it is only read. */
async function checkLines(config: SkepConfig, env: NodeJS.ProcessEnv): Promise<Line[]> {
  await using open = new AsyncDisposableStack();
  const lines = config.warnings.map((text) => note(`warning: ${text}`));
  const part = async (name: string, look: () => Promise<Line[]>): Promise<void> => {
    try {
      lines.push(...(await look()));
    } catch (error) {
      lines.push(notOk(`${name}: ${explain(error)}`));
    }
  };
  await part('store', async () => {
    const { lookIntoSqlite } = await import('../../adapters/store/sqlite/index.ts');
    const look = await lookIntoSqlite(config.dataDir, (message) => lines.push(note(message)));
    if (look.kind === 'current') open.adopt(look.store, (opened) => opened.close());
    return await storeLines(config, look);
  });
  await part('git', async () => await gitLines(config));
  await part('runtime', async () => await runtimeLines(config));
  lines.push(...secretLines(config, env), await addressLine(config));
  return lines;
}

/** Returns whether each git provider answers. What they learn is not kept. */
async function gitLines(config: SkepConfig): Promise<Line[]> {
  await using closers = new AsyncDisposableStack();
  const container = createContainer({ ...config.options, store: { kind: 'memory' } }, closers);
  const providers = await resolve(container, all(tokens.gitProvider));
  return await Promise.all(
    providers.map(async (provider) => {
      const { ok: answers, detail } = await provider.check();
      return (answers ? ok : notOk)(`git ${provider.name}: ${detail}`);
    }),
  );
}

/** Returns what the data folder holds, and whether the store knows the key that is set. */
async function storeLines({ dataDir, apiKey }: SkepConfig, look: SqliteLook): Promise<Line[]> {
  const where = `store sqlite in ${dataDir}`;
  if (look.kind === 'none') return [ok(`${where}: nothing there yet; the first start creates it`)];
  if (look.kind === 'older') {
    const versions = `schema ${look.schema}, this version's is ${look.current}`;
    return [note(`${where}: of an older version (${versions}); \`${commandName} serve\` brings it up to date`)];
  }
  const { ok: answers, detail } = await look.store.check();
  if (!answers) return [notOk(`${where}: ${detail}`)];
  const { length } = await look.store.apiKeys.list();
  const { items: quarantine } = await look.store.sandboxes.search(quarantineOwner, {}, { after: null, limit: 100 });
  const lines = [
    ok(`${where}: ${detail}; ${length === 1 ? 'one key' : `${length} keys`}`),
    ...quarantine.map(quarantineLine),
  ];
  if (apiKey === undefined) return lines;
  await using closers = new AsyncDisposableStack();
  const container = createContainer({ store: look.store, auth: { kind: 'api-keys', staticKey: apiKey } }, closers);
  return [...lines, await keyLine(apiKey, await resolve(container, tokens.auth))];
}

const adoption = `Adopt or delete it: ${commandName} sandboxes adopt, ${commandName} sandboxes delete`;

function quarantineLine({ id, statusReason }: Sandbox): Line {
  const what = `the sandbox ${id} is in quarantine`;
  return note(statusReason === null ? what : `${what}: ${sentenceOf(statusReason)} ${adoption}`);
}

/** Returns whether each secret that an agent gets is set, never its value. */
function secretLines({ specs }: SkepConfig, env: NodeJS.ProcessEnv): Line[] {
  const isSet = (name: string): boolean => (env[name] ?? '') !== '';
  const set = (specs ?? []).flatMap(({ id, secrets, agent }) =>
    [...secrets, ...(agent?.secrets ?? [])].filter(isSet).map((name) => ok(`spec ${id}: the secret ${name} is set`)));
  return [...set, ...unsetSecrets(specs, env).map(notOk)];
}

async function addressLine({ host, port }: SkepConfig): Promise<Line> {
  const address = `address ${host}:${port}`;
  const { promise, resolve } = Promise.withResolvers<Line>();
  const server = createServer();
  server.once('error', ({ code = 'unknown error' }: NodeJS.ErrnoException) => {
    resolve(code === 'EADDRINUSE' ? inUseLine(host, port, address) : notOk(`${address}: ${listenProblem(code)}`));
  });
  server.listen(port, host, () => server.close(() => resolve(ok(`${address} is free`))));
  return await promise;
}

const health = z.strictObject({ status: z.literal('ok') });

/** Returns whether the server that listens there is one of Skep. */
async function inUseLine(host: string, port: number, address: string): Promise<Line> {
  try {
    const response = await fetch(`${localUrl(host, port)}/health`, { signal: AbortSignal.timeout(2_000) });
    const isSkep = response.headers.has('X-Request-Id') && health.safeParse(await response.json()).success;
    if (isSkep) return ok(`${address} in use: a server of Skep runs there`);
  } catch {
    // Whatever answers otherwise, or not in time, is another program.
  }
  return notOk(`${address}: another program uses it; set SKEP_PORT to another port`);
}

/** Returns the configuration, with a mark on what comes from the environment. Contains no secret. */
function configText(config: SkepConfig, env: NodeJS.ProcessEnv): string {
  const values: Readonly<Record<string, unknown>> = { ...config };
  const width = 2 + Math.max(...settings.map(({ variable }) => variable.length));
  const line = (name: string, text: string): string => `  ${name.padEnd(width)}${text}\n`;
  const lines = settings.map(({ name, variable, isSecret }) => {
    const origin = (env[variable] ?? '') === '' ? '' : '   (environment)';
    const value = values[name];
    const isDuration = typeof value === 'number' && /_(?:TIMEOUT|FOR)$/.test(variable);
    return line(variable, `${isDuration ? duration(value) : shownValue(value, isSecret)}${origin}`);
  });
  const { specs, requestsPerMinute, streamsPerKey, options } = config;
  const { limits = {}, whenFull = 'refuse', startsAtOnce, keepEventsForMs = defaultKeepEventsForMs } = options;
  const configured = { ...unlimited, ...unlimitedConversations, ...limits, whenFull, requestsPerMinute, streamsPerKey };
  const allLimits = Object.entries(inSnakeCase(configured));
  return [
    ...lines,
    line('specs', specs === null ? 'the default one' : specs.map(specText).join(', ')),
    line('limits', allLimits.map(([name, value]) => `${name} ${value ?? '-'}`).join(', ')),
    line('starts', `at_once ${startsAtOnce ?? 'twice the number of cores'}`),
    line('events', `keep_for ${keepEventsForMs / 86_400_000} days`),
    line('quarantine', `keep_for ${(options.quarantineForMs ?? defaultQuarantineForMs) / 3_600_000} hours`),
  ].join('');
}

function specText({ id, pool, agent }: SandboxSpec): string {
  const extras = [...(pool.size > 0 ? [`pool of ${pool.size}`] : []), ...(agent === null ? [] : [`agent ${agent.command[0]}`])];
  return extras.length === 0 ? id : `${id} (${extras.join(', ')})`;
}

function shownValue(value: unknown, secret: boolean): string {
  if (value === undefined) return '-';
  if (secret) return '(set)';
  return Array.isArray(value) ? value.join(',') : JSON.stringify(value).replace(/^"|"$/g, '');
}
