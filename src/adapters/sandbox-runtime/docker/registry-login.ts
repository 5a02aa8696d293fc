import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type Docker from 'dockerode';
import { z } from 'zod';
import { parseJson } from '../../shared/json.ts';

const Config = z.object({
  auths: z.record(z.string(), z.object({ auth: z.string().optional(), identitytoken: z.string().optional() })).optional(),
  credsStore: z.string().optional(),
  credHelpers: z.record(z.string(), z.string()).optional(),
});

const Credential = z.object({ Username: z.string(), Secret: z.string() });

const helperMs = 15_000;

/** The login for a registry. Null if there is none. */
export type RegistryLogin = Docker.AuthConfig | { readonly identitytoken: string; readonly serveraddress: string } | null;

/**
 * Finds the login for a registry where `docker login` stores it: in a credential helper, or in the configuration itself. Null if there is
 * none, or it can't be read: the image may be public.
 */
export async function findLogin(configFolder: string, registry: string): Promise<RegistryLogin> {
  const text = await readFile(join(configFolder, 'config.json'), 'utf8').catch(() => '');
  const config = parseJson(Config, text) ?? {};
  const helper = config.credHelpers?.[registry] ?? config.credsStore;
  return (helper === undefined ? null : await askHelper(helper, registry)) ?? inConfig(config, registry);
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

/** Older configurations have URLs as keys. */
function bare(registry: string): string {
  return registry.replace(/^https?:\/\//, '').replace(/\/.*$/, '');
}

async function askHelper(helper: string, registry: string): Promise<RegistryLogin> {
  if (!/^[A-Za-z0-9._-]+$/.test(helper)) return null;
  const running = promisify(execFile)(`docker-credential-${helper}`, ['get'], { timeout: helperMs, maxBuffer: 1 << 20 });
  // A helper that does not read its input ends with an error of its own.
  running.child.stdin?.on('error', () => {}).end(registry);
  const { stdout } = await running.catch(() => ({ stdout: '' }));
  const { Username, Secret } = parseJson(Credential, stdout) ?? {};
  if (Username === undefined || Secret === undefined) return null;
  return Username === '<token>'
    ? { identitytoken: Secret, serveraddress: registry }
    : { username: Username, password: Secret, serveraddress: registry };
}
