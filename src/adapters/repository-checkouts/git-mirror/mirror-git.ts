import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { getCACertificates } from 'node:tls';
import type { GitIdentity } from '../../../domain/change.ts';
import type { GitRemote } from '../../../ports/git-provider.ts';
import { createGitRunner, type GitRunner } from '../../shared/git-process.ts';
import type { ResolvedOptions } from './git-mirror.ts';

/** Most of the mirror's commands start other programs, which must end with git. `maxObject` limits the size of one object in memory. */
export function createMirrorGit(binary: string, provider: string, maxObject = '4g'): GitRunner {
  // Git finds no files of the server's user, such as .netrc or keys. By default, a list of ten million objects fits into its memory.
  return createGitRunner({ binary, provider, ownSession: true, environment: { HOME: '/dev/null', GIT_ALLOC_LIMIT: maxObject } });
}

// The machine's proxies, and the certificates that it trusts.
const proxyVariables = ['http_proxy', 'https_proxy', 'all_proxy', 'no_proxy', 'HTTPS_PROXY', 'ALL_PROXY', 'NO_PROXY'];
const networkVariables = [...proxyVariables, 'SSL_CERT_FILE', 'SSL_CERT_DIR', 'GIT_SSL_CAINFO', 'GIT_SSL_CAPATH'];

/** Git does not know `NODE_EXTRA_CA_CERTS`. Without its certificates, git fails at a host whose API Skep can use. */
const sharesCertificates = (): boolean => (process.env['NODE_EXTRA_CA_CERTS'] ?? '') !== '' && process.env['GIT_SSL_CAINFO'] === undefined;

const certificatesIn = (root: string): string => join(root, 'ca.pem');

/** Writes the certificates that this process and the machine trust, for git. `temporary` is a path on the same file system. */
export async function writeCertificates(root: string, temporary: string): Promise<void> {
  if (!sharesCertificates()) return;
  const certificates = new Set([...getCACertificates('default'), ...getCACertificates('system')]);
  await writeFile(temporary, [...certificates].map((certificate) => `${certificate.trimEnd()}\n`).join(''));
  await rename(temporary, certificatesIn(root));
}

export type NetworkOptions = Pick<ResolvedOptions, 'answerMs' | 'root'>;

/**
 * Returns git's environment for a remote. The credential is passed here, because other users can read arguments, and a file could be left
 * behind. Git sends it to this URL only.
 */
export function networkEnvironment({ url, authorization }: GitRemote, { answerMs, root }: NetworkOptions): NodeJS.ProcessEnv {
  if (!isUrl(url)) return { GIT_ALLOW_PROTOCOL: 'file' };
  const settings = [
    ['http.followRedirects', 'false'],
    ['http.lowSpeedLimit', '1'],
    ['http.lowSpeedTime', String(Math.max(1, Math.ceil(answerMs / 1000)))],
    ...(authorization === null ? [] : [[`http.${url}.extraHeader`, `Authorization: ${authorization}`]]),
  ];
  const variables = networkVariables.map((name) => [name, process.env[name]]).filter(([, value]) => value !== undefined);
  return {
    ...Object.fromEntries(variables),
    ...(sharesCertificates() && { GIT_SSL_CAINFO: certificatesIn(root) }),
    GIT_ALLOW_PROTOCOL: new URL(url).protocol.slice(0, -1),
    GIT_CONFIG_COUNT: String(settings.length),
    ...Object.fromEntries(settings.map(([key], index) => [`GIT_CONFIG_KEY_${index}`, key])),
    ...Object.fromEntries(settings.map(([, value], index) => [`GIT_CONFIG_VALUE_${index}`, value])),
  };
}

/** What git's check of objects ignores: mistakes that are harmless, and common in old commits. */
export const oldMistakes = ['badTimezone', 'missingSpaceBeforeDate', 'zeroPaddedFilemode'] as const;

/** Returns the person with a name that git accepts. Git leaves these characters out at the ends of a name, and refuses an empty one. */
export function writableIdentity({ name, email }: GitIdentity): GitIdentity {
  return { name: /[^\s.,:;<>"'\\]/u.test(name) ? name : email, email };
}

/** Returns true if the remote is on a host, and not a folder of this machine. */
export function isUrl(remote: string): boolean {
  return /^https?:\/\//iu.test(remote);
}
