import { createHash } from 'node:crypto';
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
