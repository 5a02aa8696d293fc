import { createServer } from 'node:net';
import { z } from 'zod';
import { type JsonOption, localUrl, print } from '../../adapters/cli/console.ts';
import { inSnakeCase } from '../../adapters/shared/snake-case.ts';
import { packageVersion } from '../../adapters/shared/package-version.ts';
import type { SqliteContents } from '../../adapters/store/sqlite/index.ts';
import { quarantineOwner } from '../../domain/quarantine.ts';
import { ConfigError } from '../config/config-error.ts';
import type { SkepConfig } from '../config/config-schema.ts';
import { readDeploymentFile } from '../config/deployment-file.ts';
import { effectiveSettings } from '../config/effective-settings.ts';
import { unsetSecrets } from '../config/environment-warnings.ts';
import { readConfig } from '../config/read-config.ts';
import { shortLimitMs } from '../config/runtime-choice.ts';
import { portProxyPortOf } from '../config/settings.ts';
import { createContainer, resolve } from '../create-skep.ts';
import { all, tokens } from '../wiring/tokens.ts';
import { checkKey } from './first-screen.ts';
import { type Finding, finding, findingsText, hasFailed } from './doctor-findings.ts';
import { codeOfError, explain, listenProblem } from './explain-error.ts';
import { checkRuntime } from './doctor-runtime.ts';

/** Prints the configuration and the state of each part. Returns 1 if a part does not answer. Leaves everything as it is. */
export async function doctor(env: NodeJS.ProcessEnv, options: JsonOption): Promise<number> {
  const program = { version: packageVersion(), node: process.versions.node, platform: process.platform };
  const report = (text: string): void => void (options.json !== true && process.stdout.write(text));
  report(`Skep ${program.version} on Node ${program.node}, ${program.platform}\n\n`);
  const found = await findAll(env, report);
  const isOk = !hasFailed(found);
  if (options.json === true) print(options, { ...program, ok: isOk, findings: inSnakeCase(found) }, '');
  return isOk ? 0 : 1;
}

async function findAll(env: NodeJS.ProcessEnv, report: (text: string) => void): Promise<readonly Finding[]> {
  let config: SkepConfig;
  try {
    config = readConfig(env);
  } catch (error) {
    const detail = explain(error);
    report(`${detail}\n`);
    return [finding('configuration_invalid', { detail, problems: error instanceof ConfigError ? error.problems : [] })];
  }
  report(`Configuration\n${configText(config)}\n`);
  const found = await checkParts(config, env);
  report(`Checks\n${findingsText(found)}`);
  return found;
}

/** Checks every part. Only reads the store, because a server may use it or it may have another version. */
async function checkParts(config: SkepConfig, env: NodeJS.ProcessEnv): Promise<readonly Finding[]> {
  await using open = new AsyncDisposableStack();
  const found = config.warnings.map((detail) => finding('configuration_warning', { detail }));
  const check = async (part: string, contents: () => Promise<readonly Finding[]>): Promise<void> => {
    try {
      found.push(...(await contents()));
    } catch (error) {
      found.push(finding('check_failed', { part, reason: codeOfError(error), detail: explain(error) }));
    }
  };
  const { inspectSqlite, requireWritable } = await import('../../adapters/store/sqlite/index.ts');
  // Checked apart: the store on a full disk is still in use.
  await check('store', async () => {
    requireWritable(config.dataDir);
    return [];
  });
  await check('store', async () => {
    const warnings: Finding[] = [];
    const contents = await inspectSqlite(config.dataDir, {
      warn: ({ code, dataDir }) => {
        // Nothing is upgraded here.
        if (code !== 'upgrading') warnings.push(finding(code === 'log_lost' ? 'store_log_lost' : code, { dataDir }));
      },
      deploymentId: readDeploymentFile(config.dataDir)?.id,
    });
    if (contents.kind === 'current') open.adopt(contents.store, (opened) => opened.close());
    return warnings.length > 0 && contents.kind === 'none' ? warnings : [...warnings, ...(await checkStore(config, contents))];
  });
  await check('git', async () => await checkGit(config));
  await check('runtime', async () => await checkRuntime(config));
  return [...found, ...checkSecrets(config, env), ...(await checkAddresses(config))];
}

/** Checks each git provider. Nothing that they read is kept. */
async function checkGit(config: SkepConfig): Promise<readonly Finding[]> {
  await using closers = new AsyncDisposableStack();
  const git = (config.options.git ?? []).map((options) =>
    'provider' in options ? { ...options, timeoutMs: Math.min(options.timeoutMs ?? shortLimitMs, shortLimitMs) } : options);
  const container = createContainer({ ...config.options, git, store: { kind: 'memory' } }, closers);
  const providers = await resolve(container, all(tokens.gitProvider));
  return await Promise.all(
    providers.map(async (provider) => {
      const { ok: answers, detail } = await provider.check();
      return finding(answers ? 'git_provider_ok' : 'git_provider_failed', { provider: provider.name, detail });
    }),
  );
}

async function checkStore({ dataDir, apiKey }: SkepConfig, contents: SqliteContents): Promise<readonly Finding[]> {
  if (contents.kind === 'none') return [finding('store_absent', { dataDir })];
  if (contents.kind === 'older') return [finding('store_older', { dataDir, schema: contents.schema, currentSchema: contents.current })];
  const { ok: answers, detail } = await contents.store.check();
  if (!answers) return [finding('store_failed', { dataDir, detail })];
  const { length: keys } = await contents.store.apiKeys.list();
  const { items: quarantine } = await contents.store.sandboxes.search(quarantineOwner, {}, { after: null, limit: 100 });
  const found = [
    finding('store_ok', { dataDir, detail, keys }),
    ...quarantine.map(({ id, statusReason }) => finding('sandbox_in_quarantine', { sandboxId: id, statusReason })),
  ];
  if (apiKey === undefined) return found;
  await using closers = new AsyncDisposableStack();
  const container = createContainer({ store: contents.store, auth: { kind: 'api-keys', staticKey: apiKey } }, closers);
  return [...found, await checkKey(apiKey, await resolve(container, tokens.auth))];
}

/** Checks that each secret of a spec or an agent is set. Never shows a value. */
function checkSecrets({ specs }: SkepConfig, env: NodeJS.ProcessEnv): readonly Finding[] {
  const isSet = (name: string): boolean => (env[name] ?? '') !== '';
  const set = (specs ?? []).flatMap(({ id, secrets, agent }) =>
    [...secrets, ...(agent?.secrets ?? [])].filter(isSet).map((name) => finding('secret_ok', { specId: id, name })));
  return [...set, ...unsetSecrets(specs, env).map((unset) => finding('secret_not_set', unset))];
}

/** Checks the addresses of the API and of the proxy. A Skep server that runs has both. */
async function checkAddresses(config: SkepConfig): Promise<readonly Finding[]> {
  const own = await checkAddress(config.host, config.port, 'SKEP_PORT');
  const port = portProxyPortOf(config);
  if (own.code !== 'address_free' || port === null || port === 0) return [own];
  return [own, await checkAddress(config.host, port, 'SKEP_PROXY_PORT')];
}

/** `variable` is the setting of the port. */
async function checkAddress(host: string, port: number, variable: string): Promise<Finding> {
  const { promise, resolve } = Promise.withResolvers<Finding>();
  const server = createServer();
  server.once('error', ({ code = 'unknown error' }: NodeJS.ErrnoException) => {
    const refused = { host, port, reason: code, detail: listenProblem(code) };
    resolve(code === 'EADDRINUSE' ? checkListener(host, port, variable) : finding('address_refused', refused));
  });
  server.listen(port, host, () => server.close(() => resolve(finding('address_free', { host, port }))));
  return await promise;
}

const health = z.strictObject({ status: z.literal('ok') });

async function checkListener(host: string, port: number, variable: string): Promise<Finding> {
  try {
    const response = await fetch(`${localUrl(host, port)}/health`, { signal: AbortSignal.timeout(2_000) });
    const isSkep = response.headers.has('X-Request-Id') && health.safeParse(await response.json()).success;
    if (isSkep) return finding('address_of_skep', { host, port });
  } catch {
    // A program with another answer, or none in time, is not Skep.
  }
  return finding('address_in_use', { host, port, variable });
}

/** Returns the configuration as text, with a mark on values from the environment. Contains no secret. */
function configText(config: SkepConfig): string {
  const shown = effectiveSettings(config);
  const width = 2 + Math.max(...shown.map(({ key, variable }) => (variable ?? key).length));
  return shown.map(({ key, variable, source, value, isSecret }) => {
    const text = value ?? (isSecret && source !== 'default' ? '(set)' : '-');
    return `  ${(variable ?? key).padEnd(width)}${text}${source === 'environment' ? '   (environment)' : ''}\n`;
  }).join('');
}
