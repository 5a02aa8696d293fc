import type { Secrets } from '../ports/secrets.ts';

export interface ResolvedSecrets {
  /** By name. A missing secret has an empty value. */
  readonly values: Readonly<Record<string, string>>;
  /** The names of the secrets that the deployment does not have. */
  readonly missing: readonly string[];
}

export function resolveSecrets(names: readonly string[], secrets: Secrets): ResolvedSecrets {
  const values = Object.fromEntries(names.map((name) => [name, secrets.get(name) ?? '']));
  return { values, missing: names.filter((name) => secrets.get(name) === null) };
}
