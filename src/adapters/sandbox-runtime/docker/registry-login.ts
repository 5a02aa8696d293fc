import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type Docker from 'dockerode';
import { z } from 'zod';

const Config = z.object({
  auths: z.record(z.string(), z.object({ auth: z.string().optional(), identitytoken: z.string().optional() })).optional(),
  credsStore: z.string().optional(),
  credHelpers: z.record(z.string(), z.string()).optional(),
});

const Credential = z.object({ Username: z.string(), Secret: z.string() });

const helperMs = 15_000;

/** The login that a registry gets. Null is none. */
export type RegistryLogin = Docker.AuthConfig | { readonly identitytoken: string; readonly serveraddress: string } | null;

/**
 * Finds the login for a registry where `docker login` leaves it: with a credential helper, or in the configuration itself. Null
 * if there is none, or it can't be had: an image may be open to everybody.
 */
export async function findLogin(configFolder: string, registry: string): Promise<RegistryLogin> {
  const config = await readConfig(join(configFolder, 'config.json'));
  const helper = config.credHelpers?.[registry] ?? config.credsStore;
  return (helper === undefined ? null : await askHelper(helper, registry)) ?? inConfig(config, registry);
}

async function readConfig(file: string): Promise<z.infer<typeof Config>> {
  try {
    return Config.parse(JSON.parse(await readFile(file, 'utf8')));
  } catch {
    return {};
  }
}

function inConfig({ auths = {} }: z.infer<typeof Config>, registry: string): RegistryLogin {
  const host = bare(registry);
  const entry = auths[registry] ?? Object.entries(auths).find(([key]) => bare(key) === host)?.[1];
  if (entry?.identitytoken) return { identitytoken: entry.identitytoken, serveraddress: registry };
  const [, username, password] = /^([^:]*):(.*)$/s.exec(Buffer.from(entry?.auth ?? '', 'base64').toString()) ?? [];
  return username === undefined || password === undefined
    ? null
    : { username, password: password.replace(/\0+$/, ''), serveraddress: registry };
}

/** Older configurations have URLs for keys. */
function bare(registry: string): string {
  return registry.replace(/^https?:\/\//, '').replace(/\/.*$/, '');
}

async function askHelper(helper: string, registry: string): Promise<RegistryLogin> {
  if (!/^[A-Za-z0-9._-]+$/.test(helper)) return null;
  const answer = Promise.withResolvers<string>();
  const child = execFile(`docker-credential-${helper}`, ['get'], { timeout: helperMs, maxBuffer: 1 << 20 }, (error, stdout) =>
    error === null ? answer.resolve(stdout) : answer.reject(error),
  );
  // One that does not read ends with an error of its own.
  child.stdin?.on('error', () => {});
  child.stdin?.end(registry);
  try {
    const { Username, Secret } = Credential.parse(JSON.parse(await answer.promise));
    return Username === '<token>'
      ? { identitytoken: Secret, serveraddress: registry }
      : { username: Username, password: Secret, serveraddress: registry };
  } catch {
    return null;
  }
}
