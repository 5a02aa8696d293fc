import type { RequestProblem } from './failure.ts';
import type { Reason } from './reason.ts';
import { looksLikeCredential } from './credentials.ts';
import type { SandboxResources, SandboxSpec, TimeoutPause } from './sandbox-spec.ts';

type ChosenResource = keyof Pick<SandboxResources, 'cpus' | 'memoryBytes' | 'pids'>;

/** The parameters of a start. They add to the spec or replace its values. */
export interface SandboxParameters {
  /** Added to the spec's variables. Replaces those with the same name. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Set by the owner, to find the sandbox again. Skep does not interpret it. */
  readonly metadata?: Readonly<Record<string, string>> | undefined;
  /** From the creation to the deletion. */
  readonly timeoutMs?: number | undefined;
  /** Pauses the sandbox at the end of the timeout, and does not delete it. */
  readonly pauseAtTimeout?: Pick<TimeoutPause, 'kind' | 'renewedMs' | 'wakesOnAccess'> | undefined;
  readonly resources?: { readonly [R in ChosenResource]?: number | undefined } | undefined;
  /** Secrets that the spec allows, in addition to its own. */
  readonly secrets?: readonly string[] | undefined;
}

export const parameterLimits = {
  variables: 100,
  /** Names and values together, since each record of a sandbox holds them. */
  envCharacters: 32_768,
  metadata: 32,
  metadataKey: 128,
  metadataValue: 512,
  timeoutSeconds: 365 * 86_400,
} as const;

/** Returns the spec of one sandbox: the given one with the parameters of the start. Returns the same object if they change nothing. */
export function applyParameters(spec: SandboxSpec, { metadata: _notInSpec, ...parameters }: SandboxParameters): SandboxSpec {
  if (Object.values(parameters).every((value) => value === undefined)) return spec;
  const { env, timeoutMs, pauseAtTimeout, resources, secrets, ...unapplied } = parameters;
  // A parameter that has no effect here does not compile.
  unapplied satisfies Record<string, never>;
  const { cpus, memoryBytes, pids } = { ...resources };
  const ofSpec = spec.resources;
  return {
    ...spec,
    initialEnv: { ...spec.initialEnv, ...env },
    secrets: [...new Set([...spec.secrets, ...(secrets ?? [])])],
    resources: { ...ofSpec, cpus: cpus ?? ofSpec.cpus, memoryBytes: memoryBytes ?? ofSpec.memoryBytes, pids: pids ?? ofSpec.pids },
    rest: pauseAtTimeout === undefined
      ? { ...spec.rest, maxLifeMs: timeoutMs ?? spec.rest.maxLifeMs }
      : { ...spec.rest, timeoutPause: { ...pauseAtTimeout, afterMs: timeoutMs ?? null } },
  };
}

/** The resource limits that the runtime can apply. */
interface ResourceSupport {
  readonly limitsResources: boolean;
  readonly minMemoryBytes?: number | undefined;
}

/** Returns the parameters that the spec or the runtime does not allow. Reasons name variables, but no values. */
export function parameterProblems(
  spec: SandboxSpec, parameters: SandboxParameters, support: ResourceSupport,
): readonly RequestProblem[] {
  const { timeoutMs, secrets = [] } = parameters;
  const problems: RequestProblem[] = [...envProblems(spec, parameters), ...resourceProblems(spec, parameters, support)];
  const { maxLifeMs } = spec.rest;
  if (timeoutMs !== undefined && maxLifeMs !== null && timeoutMs > maxLifeMs) {
    problems.push({ argument: 'timeoutMs', reason: { code: 'timeout_above_spec', maxMs: maxLifeMs } });
  }
  const allowed = [...spec.secrets, ...spec.allowedSecrets];
  const refused = secrets.filter((name) => !allowed.includes(name));
  if (refused.length > 0) problems.push({ argument: 'secrets', reason: { code: 'secrets_not_allowed', names: refused, allowed } });
  return problems;
}

function envProblems(spec: SandboxSpec, { env = {}, secrets = [] }: SandboxParameters): RequestProblem[] {
  const names = Object.keys(env);
  const ofSecrets = new Set([...spec.secrets, ...secrets]);
  const reserved = names.filter((name) => isReservedVariable(name, spec) || ofSecrets.has(name));
  const plain = spec.allowPlainSecrets ? [] : names.filter((name) => looksLikeCredential(env[name] ?? ''));
  const reasons: Reason[] = [];
  if (reserved.length > 0) reasons.push({ code: 'env_reserved', names: reserved });
  if (plain.length > 0) reasons.push({ code: 'env_credential', names: plain });
  return reasons.map((reason) => ({ argument: 'env', reason }));
}

/** Skep sets these variables itself, so another value would have no effect. */
export function isReservedVariable(
  name: string, { sessionKeyEnv, ports }: { readonly sessionKeyEnv: unknown; readonly ports: readonly unknown[] },
): boolean {
  return name.startsWith('SKEP_') || name === sessionKeyEnv || (name === 'PORT' && ports.length === 1);
}

const resourceNames = { cpus: 'cpus', memoryBytes: 'memory_bytes', pids: 'pids' } as const satisfies Record<ChosenResource, string>;

function resourceProblems(
  spec: SandboxSpec, { resources = {} }: SandboxParameters, { limitsResources, minMemoryBytes: min = 0 }: ResourceSupport,
): RequestProblem[] {
  const chosen = (['cpus', 'memoryBytes', 'pids'] as const).filter((resource) => resources[resource] !== undefined);
  if (chosen.length > 0 && !limitsResources) return [{ argument: 'resources', reason: { code: 'resources_not_limited' } }];
  const problems = chosen.flatMap((resource): RequestProblem[] => {
    const max = spec.resources[resource];
    if (max !== null && (resources[resource] ?? 0) <= max) return [];
    return [{ argument: 'resources', reason: { code: 'resource_above_spec', resource: resourceNames[resource], max } }];
  });
  if ((resources.memoryBytes ?? min) < min) problems.push({ argument: 'resources', reason: { code: 'memory_below_minimum', min } });
  return problems;
}

export interface ParameterReasonData {
  /** Skep sets these variables itself, or they are secrets. */
  env_reserved: { readonly names: readonly string[] };
  env_credential: { readonly names: readonly string[] };
  secrets_not_allowed: { readonly names: readonly string[]; readonly allowed: readonly string[] };
  timeout_above_spec: { readonly maxMs: number };
  /** Null if the spec gives no bound. */
  resource_above_spec: { readonly resource: 'cpus' | 'memory_bytes' | 'pids'; readonly max: number | null };
  /** The runtime can't run a sandbox with less, in bytes. */
  memory_below_minimum: { readonly min: number };
  resources_not_limited: unknown;
}
