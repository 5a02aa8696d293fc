import { readFileSync } from 'node:fs';
import type { DockerRuntimeOptions, GitHubApp, GitOptions, SkepOptions } from '../options.ts';
import { type ConfigProblem, problemWith } from './config-error.ts';
import type { FileConfig, SkepConfig } from './file-schema.ts';
import { defined } from './field-schemas.ts';
import { settings, type Settings } from './settings.ts';

/** Returns the options of `createSkep`, without the runtime. What the configuration leaves out has its default there. */
export function toSkepOptions(settings: Settings, git: readonly GitOptions[], file: FileConfig): SkepOptions {
  const { specs, limits = {}, starts, events } = file;
  return {
    git,
    auth: { kind: 'api-keys', ...defined({ staticKey: settings.apiKey }) },
    dataDir: settings.dataDir,
    product: settings.product,
    limits: defined({
      runningPerOwner: limits.running_per_owner,
      running: limits.running,
      existingPerOwner: limits.existing_per_owner,
      existing: limits.existing,
    }),
    ...defined({ specs, whenFull: limits.when_full, startsAtOnce: starts?.at_once, keepEventsForMs: events?.keep_for }),
  };
}

export function dockerOptions({ dockerHost, dockerPublishAddress, dockerUrlHost }: SkepConfig): DockerRuntimeOptions {
  return { kind: 'docker', ...defined({ host: dockerHost, publishAddress: dockerPublishAddress, urlHost: dockerUrlHost }) };
}

/** Returns the options of a git provider. Adds what is wrong between its settings to the problems. */
export function toGitOptions(name: Settings['gitProviders'][number], config: Settings, problems: ConfigProblem[]): GitOptions {
  const { gitTimeoutMs: timeoutMs, gitServeStaleForMs: serveStaleForMs, githubToken, githubUrl, gitlabToken, gitlabUrl } = config;
  switch (name) {
    case 'local':
      return { provider: 'local', root: config.localGitRoot ?? process.cwd(), timeoutMs };
    case 'github': {
      const app = toGitHubApp(config, problems);
      if (app !== undefined && githubToken !== undefined) {
        problems.push(problemWith(settings.githubToken, 'is set together with a GitHub App; keep one of them'));
      }
      return { provider: 'github', timeoutMs, ...defined({ serveStaleForMs, url: githubUrl, token: githubToken, app }) };
    }
    case 'gitlab':
      return { provider: 'gitlab', timeoutMs, ...defined({ serveStaleForMs, url: gitlabUrl, token: gitlabToken }) };
  }
}

/** Returns the App of the settings. It needs all three of them. */
function toGitHubApp(config: Settings, problems: ConfigProblem[]): GitHubApp | undefined {
  const { githubAppId: appId, githubAppInstallationId: installationId, githubAppKeyFile: keyFile } = config;
  const names = ['githubAppId', 'githubAppInstallationId', 'githubAppKeyFile'] as const;
  const missing = names.filter((name) => config[name] === undefined);
  if (missing.length === names.length) return undefined;
  for (const name of missing) problems.push(problemWith(settings[name], 'is missing, while the others of the GitHub App are set'));
  if (appId === undefined || installationId === undefined || keyFile === undefined) return undefined;
  const privateKey = readKey(keyFile);
  if (privateKey === '') problems.push(problemWith(settings.githubAppKeyFile, 'names a file that does not hold a private key in PEM'));
  return { appId, installationId, privateKey };
}

/** Returns the content of the file, or an empty text if it is no private key. */
function readKey(path: string): string {
  try {
    const text = readFileSync(path, 'utf8');
    return text.includes('PRIVATE KEY-----') ? text : '';
  } catch {
    return '';
  }
}
