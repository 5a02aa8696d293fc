import { readFileSync } from 'node:fs';
import type { GitHubApp, GitHubOptions, GitOptions, SkepOptions } from '../options.ts';
import { ConfigError, type ConfigProblem, problemWith } from './config-error.ts';
import type { SkepConfig } from './config.ts';
import { settings, type Settings } from './settings.ts';

/** Returns the options of `createSkep`, without the runtime, which is chosen later. Throws a {@link ConfigError}. */
export function toSkepOptions(config: SkepConfig): SkepOptions {
  const problems: ConfigProblem[] = [];
  const git = config.gitProviders.map((name) => toGitOptions(name, config, problems));
  if (problems.length > 0) throw new ConfigError(problems);
  const { whenFull, requestsPerMinute: _, ...limits } = config.limits;
  return {
    git,
    auth: { kind: 'api-keys', ...(config.apiKey !== undefined && { staticKey: config.apiKey }) },
    dataDir: config.dataDir,
    product: config.product,
    ...(config.specs !== null && { specs: config.specs }),
    limits,
    whenFull,
    ...(config.starts.atOnce !== null && { startsAtOnce: config.starts.atOnce }),
    keepEventsForMs: config.events.keepForMs,
  };
}

/** The options of one git provider from the configuration; mistakes are added to the problems. */
export function toGitOptions(name: Settings['gitProviders'][number], config: Settings, problems: ConfigProblem[]): GitOptions {
  const common = {
    timeoutMs: config.gitTimeoutMs,
    ...(config.gitServeStaleForMs !== undefined && { serveStaleForMs: config.gitServeStaleForMs }),
  };
  switch (name) {
    case 'local':
      return { provider: 'local', root: config.localGitRoot ?? process.cwd(), timeoutMs: config.gitTimeoutMs };
    case 'github':
      return { provider: 'github', ...common, ...toGitHubAccess(config, problems) };
    case 'gitlab':
      return {
        provider: 'gitlab',
        ...common,
        ...(config.gitlabUrl !== undefined && { url: config.gitlabUrl }),
        ...(config.gitlabToken !== undefined && { token: config.gitlabToken }),
      };
  }
}

function toGitHubAccess(config: Settings, problems: ConfigProblem[]): Omit<GitHubOptions, 'provider'> {
  const { githubUrl, githubToken } = config;
  const app = toGitHubApp(config, problems);
  if (app !== null && githubToken !== undefined) {
    problems.push(problemWith(settings.githubToken, 'is set together with a GitHub App; keep one of them'));
  }
  return {
    ...(githubUrl !== undefined && { url: githubUrl }),
    ...(githubToken !== undefined && { token: githubToken }),
    ...(app !== null && { app }),
  };
}

/** The App needs all three of its settings. */
function toGitHubApp({ githubAppId, githubAppInstallationId, githubAppKeyFile }: Settings, problems: ConfigProblem[]): GitHubApp | null {
  if (githubAppId === undefined && githubAppInstallationId === undefined && githubAppKeyFile === undefined) return null;
  const missing = 'is missing, while the others of the GitHub App are set';
  if (githubAppId === undefined) problems.push(problemWith(settings.githubAppId, missing));
  if (githubAppInstallationId === undefined) problems.push(problemWith(settings.githubAppInstallationId, missing));
  if (githubAppKeyFile === undefined) problems.push(problemWith(settings.githubAppKeyFile, missing));
  if (githubAppId === undefined || githubAppInstallationId === undefined || githubAppKeyFile === undefined) return null;
  const privateKey = readKey(githubAppKeyFile);
  if (privateKey === null) problems.push(problemWith(settings.githubAppKeyFile, 'names a file that does not hold a private key in PEM'));
  return { appId: githubAppId, installationId: githubAppInstallationId, privateKey: privateKey ?? '' };
}

function readKey(path: string): string | null {
  try {
    const text = readFileSync(path, 'utf8');
    return text.includes('PRIVATE KEY-----') ? text : null;
  } catch {
    return null;
  }
}
