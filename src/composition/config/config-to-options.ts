import { inCamelCase } from '../../adapters/shared/snake-case.ts';
import type { CheckedOptions, GitHubApp, GitOptions } from '../skep-options.ts';
import { omit, omitUndefined } from './field-schemas.ts';
import type { FileConfig } from './config-schema.ts';
import type { GivenSettings } from './settings.ts';

/** The limits that are options of the HTTP API and of the port proxy. */
const limitsOfServers = ['requests_per_minute', 'streams_per_key', 'connections_per_sandbox'] as const;

/** Returns the options of `createSkep`, without the runtime. Missing values get their default in `createSkep`. */
export function toSkepOptions(config: FileConfig & GivenSettings, appKey: string | null): CheckedOptions {
  const { specs, starts, events, quarantine } = config;
  const { when_full: whenFull, ...limits } = omit(config.limits, limitsOfServers);
  return {
    git: config.git_providers.map((provider) => toGitOptions(provider, config, appKey)),
    auth: { kind: 'api-keys', ...omitUndefined({ staticKey: config.api_key }) },
    dataDir: config.data_dir,
    product: config.product,
    diskUsedPercent: config.disk_used_percent,
    agentMemoryBytes: config.agent_memory,
    drainTimeoutMs: config.drain_timeout,
    limits: omitUndefined(inCamelCase(limits)),
    ...omitUndefined({ specs, whenFull, startsAtOnce: starts?.at_once, setupTimeoutMs: starts?.setup_timeout }),
    ...omitUndefined({ keepEventsForMs: events?.keep_for, quarantineForMs: quarantine?.keep_for }),
  };
}

function toGitOptions(provider: GivenSettings['git_providers'][number], given: GivenSettings, appKey: string | null): GitOptions {
  const { git_timeout: timeoutMs, git_http_hosts: httpHosts, github_url, github_token, gitlab_url, gitlab_token } = given;
  switch (provider) {
    case 'local':
      return { provider, root: given.local_git_root ?? process.cwd(), timeoutMs };
    case 'github': {
      const app = toGitHubApp(given, appKey);
      return { provider, timeoutMs, ...omitUndefined({ httpHosts, url: github_url, token: github_token, app }) };
    }
    case 'gitlab':
      return { provider, timeoutMs, ...omitUndefined({ httpHosts, url: gitlab_url, token: gitlab_token }) };
  }
}

function toGitHubApp(given: GivenSettings, privateKey: string | null): GitHubApp | undefined {
  const { github_app_id: appId, github_app_installation_id: installationId } = given;
  if (appId === undefined || installationId === undefined || privateKey === null) return undefined;
  return { appId, installationId, privateKey };
}
