import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { explained } from '../../../domain/reason.ts';
import { Failure } from '../../../domain/failure.ts';

/** What a TLS connection needs, as PEM. */
interface TlsKeys {
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
 * Returns where the engine is: at `host` if that is given, otherwise where Docker's own client would look (`DOCKER_HOST`, then the
 * context that `DOCKER_CONTEXT` or its configuration names, then the default socket). `DOCKER_TLS_VERIFY` or `DOCKER_CERT_PATH` ask for
 * TLS, which is always verified. Throws `runtime_unavailable` for an invalid address or unusable files.
 */
export function findEndpoint(host: string | undefined, env: Environment, configDir?: string): Endpoint {
  const said = host ?? (env['DOCKER_HOST'] || undefined);
  if (said !== undefined) return parseEndpoint(said, () => keysOf(env, configDir));
  const context = currentContext(env, configDir);
  return context === null ? { kind: 'socket', path: defaultSocket(env) } : parseEndpoint(context.host, () => context.tls);
}

/** Throws `runtime_unavailable` if the address is of no form that Docker knows. */
function parseEndpoint(text: string, tls: () => TlsKeys | null): Endpoint {
  const socket = /^(?:unix|npipe):\/\/(.*)$/.exec(text)?.[1];
  if (socket !== undefined) return { kind: 'socket', path: socket === '' ? defaultSocket({}) : socket };
  const url = URL.parse(text.includes('://') ? text : `tcp://${text}`);
  const host = url?.hostname.replaceAll(/[[\]]/g, '') ?? '';
  if (url === null || host === '') throw misaddressed();
  switch (url.protocol) {
    case 'ssh:':
      return { kind: 'ssh', host, user: decodeURIComponent(url.username) || null, port: url.port || null };
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
  const forms = 'unix:///path, tcp://host:port or ssh://user@host';
  return misconfigured(`its engine's address is not of the form ${forms}; correct SKEP_DOCKER_HOST or DOCKER_HOST`);
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
  const candidates = [
    '/var/run/docker.sock',
    ...(home ? [join(home, '.docker/run/docker.sock')] : []),
    ...(rootless ? [join(rootless, 'docker.sock')] : []),
  ];
  return candidates.find((path) => existsSync(path)) ?? '/var/run/docker.sock';
}

const Config = z.object({ currentContext: z.string().optional() });
const Meta = z.object({ Endpoints: z.object({ docker: z.object({ Host: z.string() }) }) });

/** Returns the context of Docker's client that is in use. Null is its default one. Throws `runtime_unavailable` if it does not exist. */
function currentContext(env: Environment, configDir?: string): { readonly host: string; readonly tls: TlsKeys | null } | null {
  const folder = configFolder(env, configDir);
  const name = env['DOCKER_CONTEXT'] || parsed(Config, readIfThere(join(folder, 'config.json')))?.currentContext || 'default';
  if (name === 'default') return null;
  const digest = createHash('sha256').update(name).digest('hex');
  const meta = parsed(Meta, readIfThere(join(folder, 'contexts/meta', digest, 'meta.json')));
  if (meta === undefined) {
    const hint = 'correct DOCKER_CONTEXT, or say where the engine is with SKEP_DOCKER_HOST';
    throw misconfigured(`Docker's client has no context ${JSON.stringify(name)}; ${hint}`);
  }
  const key = (file: string): Buffer | undefined => readIfThere(join(folder, 'contexts/tls', digest, 'docker', file));
  const entries = Object.entries({ ca: key('ca.pem'), cert: key('cert.pem'), key: key('key.pem') }).filter(([, pem]) => pem !== undefined);
  return { host: meta.Endpoints.docker.Host, tls: entries.length === 0 ? null : Object.fromEntries(entries) };
}

function parsed<T>(schema: z.ZodType<T>, json: Buffer | undefined): T | undefined {
  try {
    return json === undefined ? undefined : schema.parse(JSON.parse(json.toString()));
  } catch {
    return undefined;
  }
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** The folder of Docker's own configuration. */
export function configFolder(env: Environment, configDir?: string): string {
  return configDir ?? (env['DOCKER_CONFIG'] || join(env['HOME'] || homedir(), '.docker'));
}

/** The engine can't be reached until somebody changes the configuration. */
export function misconfigured(message: string, cause?: unknown): Failure<'runtime_unavailable'> {
  const context = { runtime: 'docker', reason: explained(message), retryAfterSeconds: 60 };
  return new Failure('runtime_unavailable', context, cause === undefined ? {} : { cause });
}

/** Returns undefined if there is no such file, or it can't be read. */
function readIfThere(path: string): Buffer | undefined {
  try {
    return readFileSync(path);
  } catch {
    return undefined;
  }
}
