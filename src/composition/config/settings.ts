import { statSync } from 'node:fs';
import { isIP } from 'node:net';
import { homedir } from 'node:os';
import envPaths from 'env-paths';
import { z } from 'zod';
import { camelCase, type InCamelCase } from '../../adapters/shared/snake-case.ts';
import { defaultAgentMemoryBytes } from '../../application/agents/agent-memory-limit.ts';
import { defaultDiskUsedPercent } from '../../domain/disk-pressure.ts';
import { defaultProduct } from '../../domain/microagent.ts';
import { duration, size } from './field-schemas.ts';

const url = z.url({ protocol: /^https?$/, error: 'is not an http or https URL' })
  .refine((text) => !/[?#]|^\w+:\/\/[^/]*@/.test(text), 'has credentials, a query or a fragment')
  .transform((text) => text.replace(/\/+$/, ''));
const notEmpty = z.string().min(1, 'is empty');
const hostName = z.string().regex(/^[A-Za-z0-9.:_-]+$/, 'is not a host name or address');
const path = notEmpty.transform((text) => (text === '~' || text.startsWith('~/') ? homedir() + text.slice(1) : text));
const folder = path.refine((text) => statSync(text, { throwIfNoEntry: false })?.isDirectory() === true, 'is not a folder');
const integer = (min: number, max: number) =>
  z.union([z.string(), z.number().transform(String)], { error: 'is not a whole number' })
    .pipe(z.string().regex(/^\d+$/, 'is not a whole number')).transform(Number)
    .pipe(z.number().min(min, `is below ${min}`).max(max, `is above ${max}`));
const appNumber = integer(1, Number.MAX_SAFE_INTEGER).optional();
const apiKey = z.string()
  .min(16, 'is shorter than 16 characters')
  .max(256, 'is longer than 256 characters')
  .regex(/^[\x21-\x7e]+$/, 'has a character that is not allowed in a header');
const product = z.string().regex(/^[a-z0-9][a-z0-9_-]{0,63}$/, 'is not a lower-case word');

const gitProviderNames = ['github', 'gitlab', 'local'] as const;
const names = z.string().transform((text) => text.split(',').map((name) => name.trim()));
const listOf = <Entry extends string>(entry: z.ZodType<Entry, string>) =>
  z.union([names, z.array(z.string())]).pipe(z.array(entry).min(1));
const providerName = z.enum(gitProviderNames, { error: 'is not a known provider' });
const providers = listOf(providerName).refine((names) => new Set(names).size === names.length, 'names a provider twice');
const runtime = z.enum(['auto', 'docker', 'process'], { error: 'is not a known runtime' });
const logLevel = z.enum(['debug', 'info', 'warn', 'error', 'silent'], { error: 'is not a log level' });
const origin = z.string().refine((text) => URL.canParse(text) && new URL(text).origin === text, 'is not an origin');
const trustedProxyNames = ['loopback', 'linklocal', 'uniquelocal'] as const;
const trustedProxy = z.union([z.enum(trustedProxyNames), z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()], { error: 'is not an address' });
/** Returns true for an address that Docker's client accepts. A bare `host:port` means `tcp`. */
function isEngineAddress(text: string): boolean {
  const url = URL.parse(text.includes('://') ? text : `tcp://${text}`);
  return /^(unix|npipe):\/\//.test(text) || (url !== null && url.hostname !== '' && /^(tcp|https?|ssh):$/.test(url.protocol));
}
const ipAddress = z.string().refine((text) => isIP(text) !== 0, 'is not an IP address');

const secret = <S extends z.ZodType>(schema: S, description: string): S => schema.meta({ description, secret: true });

/** In the order of the documentation. `git_timeout` in the file is `SKEP_GIT_TIMEOUT`. Secrets are only in the environment. */
export const settingsSchema = z.object({
  host: hostName.default('127.0.0.1').describe('a host name or address, for example 127.0.0.1'),
  port: integer(0, 65_535).default(3000).describe('a port from 0 (any that is free) to 65535, for example 3000'),
  public_url: url.optional().describe('the address that clients use, for example https://skep.example.com'),
  trust_proxy: listOf(trustedProxy).optional()
    .describe(`addresses or networks of proxies, or ${trustedProxyNames.join(', ')}, for example 10.0.0.0/8,loopback`),
  proxy_port: z.union([z.literal('off'), integer(0, 65_535)], { error: 'is neither a port nor off' }).optional()
    .describe('a port from 0 (any that is free) to 65535 on which the ports of sandboxes are reached, or off, for example 3001'),
  proxy_url: url
    .refine((text) => !/^\w+:\/\/[^/]*\//.test(text), 'has a path, but ports of sandboxes need a host name of their own').optional()
    .describe('the address at which clients reach the proxy, for example https://sandboxes.example.com'),
  proxy_domain: z.string().regex(/^(?=.{1,200}$)[a-z0-9-]+(\.[a-z0-9-]+)*$/, 'is not a lower-case domain').optional()
    .describe('the domain whose subdomains lead to the proxy, for example sandboxes.example.com'),
  keep_alive_timeout: duration('5s').default(5000),
  cors_origins: listOf(origin).optional().describe('origins of pages that may call the API, for example https://app.example.com'),
  dashboard: z.enum(['on', 'off'], { error: 'is neither on nor off' }).default('on')
    .describe('on, or off to run the server without the dashboard'),
  api_key: secret(apiKey.optional(), 'a key of 16 to 256 visible ASCII characters, for example the output of: openssl rand -hex 24'),
  product: product.default(defaultProduct).describe('a lower-case word, for example skep'),
  git_providers: providers.default(['local']).describe(`names in order, of ${gitProviderNames.join(', ')}, for example github,local`),
  local_git_root: folder.optional().describe('a folder that exists, for example /srv/git'),
  git_timeout: duration('30s').default(30_000),
  git_http_hosts: listOf(hostName).optional()
    .describe('hosts that get the token over plain http, which is not encrypted, for example git.internal:8080'),
  github_token: secret(notEmpty.optional(), 'a token of GitHub'),
  github_app_id: appNumber.describe('the number of a GitHub App, for example 123456'),
  github_app_installation_id: appNumber.describe('the number of its installation, for example 7890123'),
  github_app_key_file: path.optional().describe('the file with its private key, for example /etc/skep/app.pem'),
  github_url: url.optional().describe("the URL of GitHub's REST API, for example https://github.example.com/api/v3"),
  gitlab_token: secret(notEmpty.optional(), 'a token of GitLab'),
  gitlab_url: url.optional().describe('the URL of GitLab, for example https://gitlab.example.com'),
  sandbox_runtime: runtime.default('auto').describe('docker, process or auto'),
  docker_host: notEmpty.refine(isEngineAddress, 'is not the address of an engine').optional()
    .describe("the address of Docker's engine, for example unix:///var/run/docker.sock, tcp://build-7:2376 or ssh://user@build-7"),
  docker_publish_address: ipAddress.optional()
    .describe("the address of the engine's machine on which sandboxes' ports are reached, for example 127.0.0.1"),
  docker_url_host: hostName.optional().describe('the host name in exposed_urls, for example build-7.example.com'),
  docker_firewall: z.enum(['on', 'off'], { error: 'is neither on nor off' }).default('on')
    .describe('on, or off if you manage these firewall rules yourself'),
  data_dir: path.default(() => envPaths('skep', { suffix: '' }).data).describe('a folder, for example /var/lib/skep'),
  disk_used_percent: integer(1, 100).default(defaultDiskUsedPercent)
    .describe('a percentage from 1 to 100 (no limit), for example 90'),
  agent_memory: size('256MiB').default(defaultAgentMemoryBytes),
  shutdown_timeout: duration('30s').default(30_000),
  drain_timeout: duration('10s').default(10_000),
  log_level: logLevel.default('info').describe('debug, info, warn, error or silent'),
});

export type GivenSettings = z.output<typeof settingsSchema>;
/** The settings with the names that the program uses: `gitTimeout`. */
export type Settings = Readonly<InCamelCase<GivenSettings>>;

export const variableOf = (key: string): string => `SKEP_${key.toUpperCase()}`;

/** The key, the program's name and the variable of each setting. */
export const settings = Object.entries(settingsSchema.shape).map(([key, schema]) => ({
  key, name: camelCase(key), variable: variableOf(key), isSecret: schema.meta()?.['secret'] === true,
}));

/** Returns the port of the proxy to the ports of sandboxes; null if it is off. Default: the port after the API's. */
export function portProxyPortOf({ port, proxyPort = port === 0 || port === 65_535 ? 0 : port + 1 }: Settings): number | null {
  return proxyPort === 'off' ? null : proxyPort;
}
