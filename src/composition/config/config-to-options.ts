import { readFileSync } from 'node:fs';
import { inCamelCase } from '../../adapters/shared/snake-case.ts';
import { isUnencryptedRemote } from '../../adapters/shared/plain-http.ts';
import type { CheckedOptions, GitHubApp, GitOptions } from '../skep-options.ts';
import type { Mistake } from './config-mistakes.ts';
import { omitUndefined } from './field-schemas.ts';
import type { FileConfig } from './config-schema.ts';
import type { GivenSettings } from './settings.ts';

/** Returns the options of `createSkep`, without the runtime. Missing values get their default in `createSkep`. */
export function toSkepOptions(config: FileConfig & GivenSettings, git: readonly GitOptions[]): CheckedOptions {
  const { specs, limits, starts, events, quarantine } = config;
  const { when_full: whenFull, requests_per_minute: _, streams_per_key: __, connections_per_sandbox: ___, ...ofSandboxes } = limits;
  return {
    git,
    auth: { kind: 'api-keys', ...omitUndefined({ staticKey: config.api_key }) },
    dataDir: config.data_dir,
    product: config.product,
    diskUsedPercent: config.disk_used_percent,
    agentMemoryBytes: config.agent_memory,
    drainTimeoutMs: config.drain_timeout,
    limits: omitUndefined(inCamelCase(ofSandboxes)),
    ...omitUndefined({ specs, whenFull, startsAtOnce: starts?.at_once, setupTimeoutMs: starts?.setup_timeout }),
    ...omitUndefined({ keepEventsForMs: events?.keep_for, quarantineForMs: quarantine?.keep_for }),
  };
}

/** Returns the options of a git provider. Adds contradictions between its settings to the mistakes. */
export function toGitOptions(
  provider: GivenSettings['git_providers'][number],
  config: GivenSettings,
  mistakes: Mistake[],
): GitOptions {
  const { git_timeout: timeoutMs, git_http_hosts: httpHosts, github_token: token } = config;
  switch (provider) {
    case 'local':
      return { provider, root: config.local_git_root ?? process.cwd(), timeoutMs };
    case 'github': {
      const app = toGitHubApp(config, mistakes);
      if (app !== undefined && token !== undefined) {
        mistakes.push({ path: ['github_token'], problem: 'is set, and a GitHub App too; use only one of them' });
      }
      if (token !== undefined || app !== undefined) requireEncryption('github_url', config, mistakes);
      return { provider, timeoutMs, ...omitUndefined({ httpHosts, url: config.github_url, token, app }) };
    }
    case 'gitlab':
      if (config.gitlab_token !== undefined) requireEncryption('gitlab_url', config, mistakes);
      return { provider, timeoutMs, ...omitUndefined({ httpHosts, url: config.gitlab_url, token: config.gitlab_token }) };
  }
}

function requireEncryption(key: 'github_url' | 'gitlab_url', config: GivenSettings, mistakes: Mistake[]): void {
  const url = config[key];
  if (url === undefined || !isUnencryptedRemote(url, config.git_http_hosts ?? [])) return;
  const problem = 'is plain http, which would send the token without encryption; use https, or add the host to SKEP_GIT_HTTP_HOSTS';
  mistakes.push({ path: [key], problem });
}

/** Returns the GitHub App in the settings. All three settings are required. */
function toGitHubApp(config: GivenSettings, mistakes: Mistake[]): GitHubApp | undefined {
  const { github_app_id: appId, github_app_installation_id: installationId, github_app_key_file: keyFile } = config;
  const keys = ['github_app_id', 'github_app_installation_id', 'github_app_key_file'] as const;
  const missing = keys.filter((key) => config[key] === undefined);
  if (missing.length === keys.length) return undefined;
  for (const key of missing) mistakes.push({ path: [key], problem: 'is missing, but other settings of the GitHub App are set' });
  if (appId === undefined || installationId === undefined || keyFile === undefined) return undefined;
  const privateKey = readKey(keyFile);
  if (privateKey === '') mistakes.push({ path: ['github_app_key_file'], problem: 'names a file without a private key in PEM format' });
  return { appId, installationId, privateKey };
}

/** Returns the content of the file. Returns an empty text if it is not a private key. */
function readKey(path: string): string {
  try {
    const text = readFileSync(path, 'utf8');
    return text.includes('PRIVATE KEY-----') ? text : '';
  } catch {
    return '';
  }
}
