import type { LogFields } from '../../../ports/logger.ts';

const secretNames = new Set([
  'authorization', 'cookie', 'x-session-api-key', 'apiKey', 'api_key', 'sessionApiKey', 'session_api_key', 'token', 'password', 'secret', 'key',
]);

const censored = '[redacted]';

/**
 * The fields without the values of those whose name tells of a secret, at the top and one level below. Every line goes
 * through it, so it copies only what it has to.
 */
export function redacted(fields: LogFields): LogFields {
  let copy: Record<string, unknown> | null = null;
  for (const name in fields) {
    const value = fields[name];
    const shown = secretNames.has(name) ? censored : withoutSecrets(value);
    if (shown !== value) (copy ??= { ...fields })[name] = shown;
  }
  return copy ?? fields;
}

/** The value without those of its own fields; an error is looked at when it is written out. */
export function withoutSecrets(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value) || value instanceof Error) return value;
  const names = Object.keys(value).filter((name) => secretNames.has(name));
  return names.length === 0 ? value : { ...value, ...Object.fromEntries(names.map((name) => [name, censored])) };
}
