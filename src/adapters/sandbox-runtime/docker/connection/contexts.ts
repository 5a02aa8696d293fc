import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { z } from 'zod';
import type { TlsKeys } from './endpoint.ts';
import { configFolder, misconfigured, readIfThere, type Environment } from './surroundings.ts';

const Config = z.object({ currentContext: z.string().optional() });
const Meta = z.object({ Endpoints: z.object({ docker: z.object({ Host: z.string() }) }) });

export interface Context {
  readonly host: string;
  readonly tls: TlsKeys | null;
}

/**
 * The context of Docker's client that is in use; null is its default one. Throws `runtime_unavailable` where one is named that
 * does not exist.
 */
export function configured(env: Environment, configDir?: string): Context | null {
  const folder = configFolder(env, configDir);
  const name = env['DOCKER_CONTEXT'] || parsed(Config, readIfThere(join(folder, 'config.json')))?.currentContext || 'default';
  if (name === 'default') return null;
  const digest = createHash('sha256').update(name).digest('hex');
  const meta = parsed(Meta, readIfThere(join(folder, 'contexts/meta', digest, 'meta.json')));
  if (meta === undefined) throw misconfigured(`Docker's client has no context ${JSON.stringify(name)}; correct DOCKER_CONTEXT, or say where the engine is with SKEP_DOCKER_HOST`);
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
