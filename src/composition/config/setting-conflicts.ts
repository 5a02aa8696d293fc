import { isUnencryptedRemote } from '../../adapters/shared/plain-http.ts';
import type { FieldProblem } from './field-problems.ts';
import type { GivenSettings } from './settings.ts';

/**
 * Returns the conflicts between settings that are correct by themselves. `appKey` is the private key in the GitHub App's key file; null if
 * there is none.
 */
export function settingConflicts(given: GivenSettings, appKey: string | null): readonly FieldProblem[] {
  const ofPorts = given.proxy_port === given.port && given.port !== 0
    ? [{ path: ['proxy_port'], problem: 'is the port of the API too (SKEP_PORT); the proxy needs another one' }] : [];
  return [...ofPorts, ...given.git_providers.flatMap((provider) => gitConflicts(provider, given, appKey))];
}

function gitConflicts(
  provider: GivenSettings['git_providers'][number], given: GivenSettings, appKey: string | null,
): readonly FieldProblem[] {
  switch (provider) {
    case 'local':
      return [];
    case 'github': {
      const isAppComplete = appSettings.every((key) => given[key] !== undefined);
      const isTokenSet = given.github_token !== undefined;
      return [
        ...appConflicts(given, appKey),
        ...(isAppComplete && isTokenSet ? [{ path: ['github_token'], problem: 'is set, and a GitHub App too; use only one of them' }] : []),
        ...(isAppComplete || isTokenSet ? encryptionConflicts('github_url', given) : []),
      ];
    }
    case 'gitlab':
      return given.gitlab_token === undefined ? [] : encryptionConflicts('gitlab_url', given);
  }
}

const appSettings = ['github_app_id', 'github_app_installation_id', 'github_app_key_file'] as const;

/** Either all settings of the GitHub App are set, or none. */
function appConflicts(given: GivenSettings, appKey: string | null): readonly FieldProblem[] {
  const missing = appSettings.filter((key) => given[key] === undefined);
  if (missing.length === appSettings.length) return [];
  if (missing.length > 0) {
    return missing.map((key) => ({ path: [key], problem: 'is missing, but other settings of the GitHub App are set' }));
  }
  return appKey === null ? [{ path: ['github_app_key_file'], problem: 'names a file without a private key in PEM format' }] : [];
}

function encryptionConflicts(key: 'github_url' | 'gitlab_url', given: GivenSettings): readonly FieldProblem[] {
  const url = given[key];
  if (url === undefined || !isUnencryptedRemote(url, given.git_http_hosts ?? [])) return [];
  const problem = 'is plain http, which would send the token without encryption; use https, or add the host to SKEP_GIT_HTTP_HOSTS';
  return [{ path: [key], problem }];
}
