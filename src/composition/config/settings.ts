import { statSync } from 'node:fs';
import { isIP } from 'node:net';
import { homedir } from 'node:os';
import envPaths from 'env-paths';
import { z } from 'zod';
import { defaultProduct } from '../../domain/microagent.ts';
import { duration, durationForm } from './field-schemas.ts';

/** One setting: a variable of the environment, or a key of the file. */
interface Setting<S extends z.ZodType = z.ZodType> {
  readonly variable: string;
  /** Null: a secret, which only the environment may hold. */
  readonly key: string | null;
  readonly schema: S;
  /** What it takes, with an example. */
  readonly form: string;
}

function setting<S extends z.ZodType>(variable: string, schema: S, form: string): Setting<S> {
  return { variable, key: variable.replace(/^SKEP_/, '').toLowerCase(), schema, form };
}

function secret<S extends z.ZodType>(variable: string, schema: S, form: string): Setting<S> {
  return { variable, key: null, schema, form };
}

const url = z.url({ protocol: /^https?$/, error: 'is not an http or https URL' })
  .refine((text) => !/[?#]|^\w+:\/\/[^/]*@/.test(text), 'has credentials, a query or a fragment')
  .transform((text) => text.replace(/\/+$/, ''));
const notEmpty = z.string().min(1, 'is empty');
const hostName = z.string().regex(/^[A-Za-z0-9.:_-]+$/, 'is not a host name or address');
const path = notEmpty.transform((text) => (text === '~' || text.startsWith('~/') ? homedir() + text.slice(1) : text));
const folder = path.refine((text) => statSync(text, { throwIfNoEntry: false })?.isDirectory() === true, 'is not a folder');
const integer = (min: number, max: number) =>
  z.coerce.string().regex(/^\d+$/, 'is not a whole number').transform(Number)
    .pipe(z.number().min(min, `is below ${min}`).max(max, `is above ${max}`));
const appNumber = integer(1, Number.MAX_SAFE_INTEGER).optional();
const apiKey = z.string()
  .min(16, 'is shorter than 16 characters')
  .max(256, 'is longer than 256 characters')
  .regex(/^[\x21-\x7e]+$/, 'has a character that no header takes');
const keyForm = 'a key of 16 to 256 visible ASCII characters, for example the output of: openssl rand -hex 24';
const product = z.string().regex(/^[a-z0-9][a-z0-9_-]{0,63}$/, 'is not a lower-case word');

const gitProviderNames = ['github', 'gitlab', 'local'] as const;
const names = z.string().transform((text) => text.split(',').map((name) => name.trim()));
const providerName = z.enum(gitProviderNames, { error: ({ input }) => `has ${JSON.stringify(input)}, no provider that Skep knows` });
const providers = z.union([names, z.array(z.string())], { error: 'is not a list of names' })
  .pipe(z.array(providerName).min(1, 'is empty').refine((names) => new Set(names).size === names.length, 'names a provider twice'));
const providersForm = `names in order, of ${gitProviderNames.join(', ')}, for example github,local`;
const runtime = z.enum(['auto', 'docker', 'process'], { error: 'is no runtime' });
const logLevel = z.enum(['debug', 'info', 'warn', 'error', 'silent'], { error: 'is no log level' });
const ipAddress = z.string().refine((text) => isIP(text) !== 0, 'is not an IP address');

/** Every setting, in the order in which they are documented. */
export const settings = {
  host: setting('SKEP_HOST', hostName.default('127.0.0.1'), 'a host name or address, for example 127.0.0.1'),
  port: setting('SKEP_PORT', integer(0, 65_535).default(3000), 'a port from 0 (any that is free) to 65535, for example 3000'),
  publicUrl: setting('SKEP_PUBLIC_URL', url.optional(), 'the address that clients use, for example https://skep.example.com'),
  apiKey: secret('SKEP_API_KEY', apiKey.optional(), keyForm),
  product: setting('SKEP_PRODUCT', product.default(defaultProduct), 'a lower-case word, for example skep'),
  gitProviders: setting('SKEP_GIT_PROVIDERS', providers.default(['local']), providersForm),
  localGitRoot: setting('SKEP_LOCAL_GIT_ROOT', folder.optional(), 'a folder that exists, for example /srv/git'),
  gitTimeoutMs: setting('SKEP_GIT_TIMEOUT', duration('30s').default(30_000), durationForm('30s')),
  gitServeStaleForMs: setting(
    'SKEP_GIT_SERVE_STALE_FOR', duration('10m').optional(), `${durationForm('10m')}; left out, a git host that is down is a failure`,
  ),
  githubToken: secret('SKEP_GITHUB_TOKEN', notEmpty.optional(), 'a token of GitHub'),
  githubAppId: setting('SKEP_GITHUB_APP_ID', appNumber, 'the number of a GitHub App, for example 123456'),
  githubAppInstallationId: setting('SKEP_GITHUB_APP_INSTALLATION_ID', appNumber, "the number of its installation, for example 7890123"),
  githubAppKeyFile: setting('SKEP_GITHUB_APP_KEY_FILE', path.optional(), 'the file with its private key, for example /etc/skep/app.pem'),
  githubUrl: setting('SKEP_GITHUB_URL', url.optional(), "the URL of GitHub's REST API, for example https://github.example.com/api/v3"),
  gitlabToken: secret('SKEP_GITLAB_TOKEN', notEmpty.optional(), 'a token of GitLab'),
  gitlabUrl: setting('SKEP_GITLAB_URL', url.optional(), 'the URL of GitLab, for example https://gitlab.example.com'),
  sandboxRuntime: setting('SKEP_SANDBOX_RUNTIME', runtime.default('auto'), 'docker, process or auto'),
  dockerHost: setting('SKEP_DOCKER_HOST', notEmpty.optional(), "the address of Docker's engine, for example unix:///var/run/docker.sock"),
  dockerPublishAddress: setting(
    'SKEP_DOCKER_PUBLISH_ADDRESS', ipAddress.optional(),
    "the address of the engine's machine on which sandboxes' ports are reached, for example 127.0.0.1",
  ),
  dockerUrlHost: setting('SKEP_DOCKER_URL_HOST', hostName.optional(), 'the host name in exposed_urls, for example build-7.example.com'),
  dataDir: setting('SKEP_DATA_DIR', path.default(() => envPaths('skep', { suffix: '' }).data), 'a folder, for example /var/lib/skep'),
  logLevel: setting('SKEP_LOG_LEVEL', logLevel.default('info'), 'debug, info, warn, error or silent'),
};

export type Settings = { readonly [N in keyof typeof settings]: z.output<(typeof settings)[N]['schema']> };

/** Takes what is given for each setting, by its name. */
// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the members of the table keep their names and types
export const settingsSchema = z.object(
  Object.fromEntries(Object.entries(settings).map(([name, { schema }]) => [name, schema])),
) as unknown as z.ZodType<Settings>;
