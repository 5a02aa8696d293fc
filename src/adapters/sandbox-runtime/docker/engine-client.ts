import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { Agent } from 'node:http';
import { Agent as SecureAgent } from 'node:https';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import Docker from 'dockerode';
import { z } from 'zod';
import { parseJson } from '../../shared/json.ts';
import { misconfigured } from './engine.ts';
import { SshAgent } from './ssh-connection.ts';

/** Proxies on the way to the engine may close a connection that is idle for longer. The number of open connections has no limit. */
const connections = { keepAlive: true, timeout: 30_000 };

/** The keys and certificates of a TLS connection, as PEM. */
type TlsKeys = Partial<Readonly<Record<'ca' | 'cert' | 'key', string>>>;

/** The address of an engine and the agent that connects to it. */
interface Endpoint {
  readonly agent: Agent;
  readonly address: Docker.DockerOptions;
  /** The address to show to a person, without a user or a password. */
  readonly shownAddress: string;
  /** Null if the engine is on this machine. */
  readonly remoteHost: string | null;
}

/** dockerode fills missing options from Docker's environment variables. The endpoint already contains them, so each option is set. */
const names = ['host', 'port', 'socketPath', 'username', 'ca', 'cert', 'key'];
const unset = Object.fromEntries(names.map((name) => [name, undefined]));

/**
 * Returns a client of the engine at `host`. Without `host`, uses the same address as Docker's own client: `DOCKER_HOST`, then the context
 * from `DOCKER_CONTEXT` or the configuration, then the default socket. `DOCKER_TLS_VERIFY` or `DOCKER_CERT_PATH` enable TLS, which is
 * always verified. Throws `runtime_unavailable` for an invalid address or unusable files.
 */
export function createClient(host: string | undefined, env: Environment, configDir?: string) {
  const { agent, address, remoteHost, shownAddress } = findEndpoint(host ?? (env['DOCKER_HOST'] || undefined), env, configDir);
  // The client formats each request for a debug log that is off. Formatting all sockets of the agent takes longer than the request.
  Object.defineProperty(agent, inspect.custom, { value: () => agent.constructor.name });
  const docker = new Docker(Object.assign({ ...unset, protocol: 'http' as const, agent }, address));
  return { docker, remoteHost, shownAddress, close: () => agent.destroy() };
}

function findEndpoint(given: string | undefined, env: Environment, configDir?: string): Endpoint {
  if (given !== undefined) return parseEndpoint(given, () => keysOf(env, configDir));
  const context = currentContext(env, configDir);
  return context === null ? socketEndpoint(defaultSocket(env)) : parseEndpoint(context.host, () => context.tls);
}

function socketEndpoint(socketPath: string): Endpoint {
  return { agent: new Agent(connections), address: { socketPath }, shownAddress: `unix://${socketPath}`, remoteHost: null };
}

/** Throws `runtime_unavailable` if Docker does not support this form of address. */
function parseEndpoint(text: string, tls: () => TlsKeys | null): Endpoint {
  const socket = /^(?:unix|npipe):\/\/(.*)$/.exec(text)?.[1];
  if (socket !== undefined) return socketEndpoint(socket === '' ? defaultSocket({}) : socket);
  const url = URL.parse(text.includes('://') ? text : `tcp://${text}`);
  const remoteHost = url?.hostname.replaceAll(/[[\]]/g, '') ?? '';
  if (url?.protocol === 'ssh:' && remoteHost !== '') {
    const agent = new SshAgent({ host: remoteHost, user: decodeURIComponent(url.username), port: url.port }, connections);
    // The agent connects by itself; the name is only for the header.
    return { agent, address: { host: 'docker.invalid', port: 80 }, shownAddress: `ssh://${url.host}`, remoteHost };
  }
  if (url === null || remoteHost === '' || !['tcp:', 'http:', 'https:'].includes(url.protocol)) {
    const forms = 'unix:///path, tcp://host:port or ssh://user@host';
    throw misconfigured(`its engine's address is not of the form ${forms}; correct SKEP_DOCKER_HOST or DOCKER_HOST`);
  }
  const keys = tls() ?? (url.protocol === 'https:' ? {} : null);
  const host = remoteHost.includes(':') ? `[${remoteHost}]` : remoteHost;
  const port = Number(url.port || (keys === null ? 2375 : 2376));
  const agent = keys === null ? new Agent(connections) : new SecureAgent({ ...connections, ...keys });
  const protocol = keys === null ? 'http' : 'https';
  return { agent, address: { host, port, protocol, ...keys }, shownAddress: `tcp://${host}:${port}`, remoteHost };
}

function keysOf(env: Environment, configDir?: string): TlsKeys | null {
  const folder = env['DOCKER_CERT_PATH'] || undefined;
  if (folder === undefined && !env['DOCKER_TLS_VERIFY']) return null;
  const from = folder ?? configFolder(env, configDir);
  try {
    const read = (name: string): string => readFileSync(join(from, name), 'utf8');
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

/** Returns whether an engine is configured: Docker's variables, the context of its client, or a socket in its usual place. */
export function isEngineConfigured(env: Environment): boolean {
  if (env['DOCKER_HOST'] || contextName(env) !== 'default') return true;
  return existsSync(defaultSocket(env));
}

const Config = z.object({ currentContext: z.string().optional() });
const Meta = z.object({ Endpoints: z.object({ docker: z.object({ Host: z.string() }) }) });

/** Returns the current context of Docker's client. Null for the default context. Throws `runtime_unavailable` if it does not exist. */
function currentContext(env: Environment, configDir?: string): { readonly host: string; readonly tls: TlsKeys | null } | null {
  const folder = configFolder(env, configDir);
  const name = contextName(env, configDir);
  if (name === 'default') return null;
  const digest = createHash('sha256').update(name).digest('hex');
  const meta = parseJson(Meta, readText(join(folder, 'contexts/meta', digest, 'meta.json')));
  if (meta === undefined) {
    const hint = 'correct DOCKER_CONTEXT, or say where the engine is with SKEP_DOCKER_HOST';
    throw misconfigured(`Docker's client has no context ${JSON.stringify(name)}; ${hint}`);
  }
  const key = (file: string): string => readText(join(folder, 'contexts/tls', digest, 'docker', file));
  const entries = Object.entries({ ca: key('ca.pem'), cert: key('cert.pem'), key: key('key.pem') }).filter(([, pem]) => pem !== '');
  return { host: meta.Endpoints.docker.Host, tls: entries.length === 0 ? null : Object.fromEntries(entries) };
}

function contextName(env: Environment, configDir?: string): string {
  const config = parseJson(Config, readText(join(configFolder(env, configDir), 'config.json')));
  return env['DOCKER_CONTEXT'] || config?.currentContext || 'default';
}

export type Environment = Readonly<Record<string, string | undefined>>;

export function configFolder(env: Environment, configDir?: string): string {
  return configDir ?? (env['DOCKER_CONFIG'] || join(env['HOME'] || homedir(), '.docker'));
}

/** Returns an empty string if the file does not exist or can't be read. */
function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
