import { isLoopback } from '../../adapters/shared/plain-http.ts';
import { commandName } from '../../client/command-name.ts';
import type { SandboxSpec } from '../../domain/sandbox-spec.ts';
import { configPathForm } from './config-file.ts';
import type { ConfigProblem } from './config-error.ts';
import { fileSchema } from './config-schema.ts';
import { fieldAt, nearest } from './field-problems.ts';
import { type Settings, settings, settingsSchema, variableOf } from './settings.ts';
import { namedSecrets } from './spec-conflicts.ts';

/** Variables that are not settings: they are for sandboxes or tests. */
const otherVariables = /^SKEP_(CONFIG|SANDBOX_ID|SANDBOX_MARK|WORKSPACE|PORT_.+|REQUIRE_.+|ENGINE_.+)$/;

/** Returns each variable that looks like a setting but is not. A spec's secret can have any name. `specs` is not parsed yet. */
export function unknownVariables(env: NodeJS.ProcessEnv, specs: unknown): readonly ConfigProblem[] {
  const known = ['SKEP_CONFIG', ...settings.map(({ variable }) => variable)];
  const given = new Set(namedSecrets(specs));
  return Object.keys(env)
    .filter((name) => name.startsWith('SKEP_') && !known.includes(name) && !given.has(name) && !otherVariables.test(name))
    .map((name) => {
      const { advice, form } = adviceFor(name, known);
      return { name, problem: `is set, but it is not a known variable; ${advice}`, form };
    });
}

function adviceFor(name: string, known: readonly string[]): { readonly advice: string; readonly form: string } {
  const [word = '', ...words] = [name, ...known].map((variable) => variable.replace(/^SKEP_/, '').toLowerCase());
  if (Object.hasOwn(fileSchema.shape, word)) {
    const place = `${word} belongs in the file that SKEP_CONFIG names`;
    return { advice: place, form: `${word} in the file that SKEP_CONFIG names: ${fieldAt(fileSchema, [word]).form}` };
  }
  const meant = nearest(word, words);
  if (meant === null) return { advice: `\`${commandName} doctor\` lists all known variables`, form: `one of ${known.join(', ')}` };
  const variable = variableOf(meant);
  const form = meant === 'config' ? configPathForm : fieldAt(settingsSchema, [meant]).form;
  return { advice: `did you mean ${variable}?`, form: `${variable}: ${form}` };
}

/** Returns the secrets of the specs and their agents that have no value, each with a warning that names the consequence. */
export function unsetSecrets(specs: readonly SandboxSpec[] | null, env: NodeJS.ProcessEnv) {
  const unset = (specId: string, name: string, who: string, what: string) => {
    if (env[name] === '') return [{ specId, name, detail: `${name} is empty: ${who} gets an empty value; ${advice}` }];
    if (env[name] !== undefined) return [];
    return [{ specId, name, detail: `${name} is not set: each ${what} will fail to start (ERROR); ${advice}` }];
  };
  return (specs ?? []).flatMap(({ id, secrets, agent }) => [
    ...secrets.flatMap((name) => unset(id, name, `a sandbox of the spec ${id}`, `sandbox of the spec ${id}`)),
    ...(agent?.secrets ?? []).flatMap((name) =>
      unset(id, name, `the agent of the spec ${id}`, `conversation with the agent of the spec ${id}`)),
  ]);
}

const advice = "set it in the server's environment, and restart the server";

/** Returns a warning if the requests to the APIs of git hosts would not use the outgoing proxy of the environment. */
export function outgoingProxyWarnings(env: NodeJS.ProcessEnv, { gitProviders }: Settings): readonly string[] {
  const proxy = ['HTTPS_PROXY', 'https_proxy', 'HTTP_PROXY', 'http_proxy'].find((name) => (env[name] ?? '') !== '');
  const isUsed = env['NODE_USE_ENV_PROXY'] === '1' || env['NODE_OPTIONS']?.includes('--use-env-proxy') === true;
  if (proxy === undefined || isUsed || gitProviders.every((name) => name === 'local')) return [];
  return [`${proxy} is set, but requests to the APIs of git hosts do not use this proxy; set NODE_USE_ENV_PROXY=1 too, `
    + 'and name 127.0.0.1,localhost,::1 in NO_PROXY'];
}

/** Returns true for a wildcard address, on which a server is reachable by every address of its machine. */
export function isEveryAddress(host: string | undefined): boolean {
  return host === '0.0.0.0' || host === '::';
}

/** Returns a warning for each address that clients on other machines get but can't use. */
export function addressWarnings(settings: Settings): readonly string[] {
  const { host, publicUrl, proxyPort, proxyUrl, dockerPublishAddress, dockerUrlHost } = settings;
  const warnings: string[] = [];
  if (isEveryAddress(host) && publicUrl === undefined) {
    warnings.push(`SKEP_HOST is ${host}, which means all addresses of this machine; set SKEP_PUBLIC_URL to the address that clients use`);
  }
  const isBehindReverseProxy = isLoopback(host) && publicUrl !== undefined && !isLoopback(new URL(publicUrl).hostname);
  if ((isEveryAddress(host) || isBehindReverseProxy) && proxyPort !== 'off' && proxyUrl === undefined) {
    warnings.push('other machines reach the server, but exposed_urls and links to ports of sandboxes work only on this machine; '
      + 'set SKEP_PROXY_URL to the address at which clients reach the ports of sandboxes (SKEP_PROXY_PORT)');
  }
  if (!isLoopback(host) && proxyPort === 'off' && dockerPublishAddress === undefined) {
    warnings.push('other machines reach the server, but not the ports of its sandboxes: exposed_urls work only on this machine; '
      + 'with Docker, set SKEP_DOCKER_PUBLISH_ADDRESS to an address that clients can reach');
  }
  if (isEveryAddress(dockerPublishAddress) && dockerUrlHost === undefined) {
    warnings.push(`SKEP_DOCKER_PUBLISH_ADDRESS is ${dockerPublishAddress}, which means all addresses of the engine's machine; set `
      + 'SKEP_DOCKER_URL_HOST to the host name for exposed_urls');
  }
  return warnings;
}
