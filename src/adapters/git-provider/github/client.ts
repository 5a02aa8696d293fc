import { createAppAuth } from '@octokit/auth-app';
import { Octokit } from '@octokit/rest';
import type { GitHubClient, ResolvedOptions } from './options.ts';

const nothing = (): void => undefined;
// Octokit would write requests and deprecations to the console.
const silent = { debug: nothing, info: nothing, warn: nothing, error: nothing };

export function createClient({ url, token, app, client }: ResolvedOptions): GitHubClient {
  if (client !== undefined) return client;
  const common = {
    baseUrl: url,
    userAgent: 'skep',
    log: silent,
    // Also for the requests by which an App obtains its token.
    request: { redirect: 'manual' as const, log: silent },
  };
  if (app !== undefined) return new Octokit({ ...common, authStrategy: createAppAuth, auth: { ...app, log: silent } });
  return new Octokit(token === undefined ? common : { ...common, auth: token });
}
