import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { configured } from './contexts.ts';
import { configFolder, isThere, misconfigured, type Environment } from './surroundings.ts';

/** What a TLS connection needs, as PEM. */
export interface TlsKeys {
  readonly ca?: Buffer;
  readonly cert?: Buffer;
  readonly key?: Buffer;
}

/** Where an engine listens. */
export type Endpoint =
  | { readonly kind: 'socket'; readonly path: string }
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number; readonly tls: TlsKeys | null }
  | { readonly kind: 'ssh'; readonly host: string; readonly user: string | null; readonly port: string | null };

/**
 * Where the engine is: at `host` if it is said, otherwise where Docker's own client would look (`DOCKER_HOST`, then the context
 * that `DOCKER_CONTEXT` or its configuration names, then the default socket). `DOCKER_TLS_VERIFY` or `DOCKER_CERT_PATH` ask for
 * TLS, which is always verified. Throws `runtime_unavailable` for an address or files that are of no use.
 */
export function findEndpoint(host: string | undefined, env: Environment, configDir?: string): Endpoint {
  const said = host ?? (env['DOCKER_HOST'] || undefined);
  if (said !== undefined) return parseEndpoint(said, () => keysOf(env, configDir));
  const context = configured(env, configDir);
  return context === null ? { kind: 'socket', path: defaultSocket(env) } : parseEndpoint(context.host, () => context.tls);
}

/** Throws `runtime_unavailable` where the address is of no form that Docker knows. */
export function parseEndpoint(text: string, tls: () => TlsKeys | null): Endpoint {
  const socket = /^(?:unix|npipe):\/\/(.*)$/.exec(text)?.[1];
  if (socket !== undefined) return { kind: 'socket', path: socket === '' ? defaultSocket({}) : socket };
  const url = URL.parse(text.includes('://') ? text : `tcp://${text}`);
  const host = url?.hostname.replaceAll(/[[\]]/g, '') ?? '';
  if (url === null || host === '') throw misaddressed();
  switch (url.protocol) {
    case 'ssh:':
      return { kind: 'ssh', host, user: url.username === '' ? null : decodeURIComponent(url.username), port: url.port === '' ? null : url.port };
    case 'tcp:':
    case 'http:':
    case 'https:': {
      const keys = tls() ?? (url.protocol === 'https:' ? {} : null);
      return { kind: 'tcp', host, port: Number(url.port === '' ? (keys === null ? 2375 : 2376) : url.port), tls: keys };
    }
    default:
      throw misaddressed();
  }
}

function misaddressed(): Error {
  return misconfigured("its engine's address is not of the form unix:///path, tcp://host:port or ssh://user@host; correct SKEP_DOCKER_HOST or DOCKER_HOST");
}

function keysOf(env: Environment, configDir?: string): TlsKeys | null {
  const folder = env['DOCKER_CERT_PATH'] || undefined;
  if (folder === undefined && !env['DOCKER_TLS_VERIFY']) return null;
  const from = folder ?? configFolder(env, configDir);
  try {
    const read = (name: string): Buffer => readFileSync(join(from, name));
    return { ca: read('ca.pem'), cert: read('cert.pem'), key: read('key.pem') };
  } catch (error) {
    throw misconfigured('DOCKER_CERT_PATH does not name a folder with ca.pem, cert.pem and key.pem that can be read', error);
  }
}

function defaultSocket(env: Environment): string {
  if (process.platform === 'win32') return '//./pipe/docker_engine';
  const rootless = env['XDG_RUNTIME_DIR'];
  const home = env['HOME'];
  const candidates = ['/var/run/docker.sock', ...(home ? [join(home, '.docker/run/docker.sock')] : []), ...(rootless ? [join(rootless, 'docker.sock')] : [])];
  return candidates.find(isThere) ?? '/var/run/docker.sock';
}
