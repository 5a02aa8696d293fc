import { createHash, randomUUID } from 'node:crypto';
import type { ResolvedOptions } from './options.ts';

/**
 * What may share knowledge: the same credential at the same host, and nobody else. A secret goes into it as a hash only.
 * Nothing is known of the credential of a ready-made client, so that it shares with nobody.
 */
export function knowledgeScope(options: ResolvedOptions): string {
  return `github ${options.url} ${credentialOf(options)}`;
}

function credentialOf({ token, app, client }: ResolvedOptions): string {
  if (client !== undefined) return `client ${randomUUID()}`;
  if (app !== undefined) return `app ${sha256(JSON.stringify([app.appId, app.installationId, app.privateKey]))}`;
  return token === undefined ? 'none' : `token ${sha256(token)}`;
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
