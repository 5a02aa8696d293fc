import { createHash } from 'node:crypto';
import { basicAuthorization } from '../git-host-options.ts';
import { unauthorized } from './failures.ts';
import type { ResolvedOptions } from './options.ts';

/** What a request says of who makes it. */
export interface Credential {
  /** Fails with `provider_unauthorized` where a ready-made client can't tell its token. */
  headers(): Promise<Readonly<Record<string, string>>>;
  /** Is there one at all? */
  readonly given: boolean;
}

export function createCredential({ token, client }: Pick<ResolvedOptions, 'token' | 'client'>): Credential {
  if (client !== undefined) {
    const { headers, authHeaders } = client.Projects;
    return { given: Object.keys(authHeaders).length > 0, headers: async () => ({ ...headers, ...(await readAll(authHeaders)) }) };
  }
  const headers = token === undefined ? {} : { 'private-token': token };
  return { given: token !== undefined, headers: async () => headers };
}

/** What git sends in place of those headers, which GitLab does not take from it; null where they hold no token that it would take. */
export function gitAuthorization(headers: Readonly<Record<string, string>>): string | null {
  const entries = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value] as const);
  const byName = new Map<string, string>(entries);
  const token = byName.get('private-token') ?? /^Bearer +(.+)$/iu.exec(byName.get('authorization') ?? '')?.[1];
  if (token !== undefined) return basicAuthorization('oauth2', token);
  const jobToken = byName.get('job-token');
  return jobToken === undefined ? null : basicAuthorization('gitlab-ci-token', jobToken);
}

async function readAll(readers: Readonly<Record<string, () => Promise<string>>>): Promise<Record<string, string>> {
  try {
    const entries = Object.entries(readers).map(async ([name, read]) => [name, await read()] as const);
    return Object.fromEntries(await Promise.all(entries));
  } catch {
    throw unauthorized(new Error('the ready-made client can not tell its token'));
  }
}

/**
 * What may share knowledge: the same credential at the same host, and nobody else. A secret goes into it as a hash only.
 */
export function knowledgeScope(url: string, headers: Readonly<Record<string, string>>): string {
  const entries = Object.entries(headers).toSorted(([a], [b]) => (a < b ? -1 : Number(a > b)));
  const digest = createHash('sha256').update(JSON.stringify(entries)).digest('hex');
  return `gitlab ${url} ${entries.length === 0 ? 'none' : digest}`;
}
