import { readFileSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { Failure } from '../../../../domain/failure.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** The folder of Docker's own configuration. */
export function configFolder(env: Environment, configDir?: string): string {
  return configDir ?? (env['DOCKER_CONFIG'] || join(env['HOME'] || homedir(), '.docker'));
}

/** Nothing can be reached as long as somebody does not change what is configured. */
export function misconfigured(reason: string, cause?: unknown): Failure<'runtime_unavailable'> {
  return new Failure('runtime_unavailable', { runtime: 'docker', reason, retryAfterSeconds: 60 }, cause === undefined ? {} : { cause });
}

export function isThere(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false }) !== undefined;
}

/** Undefined where there is no such file, or it can't be read. */
export function readIfThere(path: string): Buffer | undefined {
  try {
    return readFileSync(path);
  } catch {
    return undefined;
  }
}
