import { minMemoryBytes } from '../../adapters/sandbox-runtime/docker/spec-options.ts';
import { portVariable } from '../../adapters/sandbox-runtime/port-variables.ts';
import { formatQuantity, parseQuantity, sizeUnits } from '../../client/quantities.ts';
import { defaultProtocol } from '../../domain/agent.ts';
import { looksLikeCredential } from '../../domain/credentials.ts';
import { isReservedVariable } from '../../domain/sandbox-parameters.ts';
import { defaultIsolation, defaultSessionKeyEnv, type SandboxSpec } from '../../domain/sandbox-spec.ts';
import type { FieldProblem } from './field-problems.ts';
import { settings } from './settings.ts';

type Keys = Readonly<Record<string, unknown>>;

/**
 * Returns conflicts in the unparsed specs, so one problem does not hide another. Skips values of the wrong form. `protocols` is null if the
 * names of the agent protocols are not known.
 */
export function conflictsIn(
  specs: unknown, forDocker: boolean, protocols: readonly string[] | null = [defaultProtocol],
): readonly FieldProblem[] {
  const written = listOf(specs).map(mappingOf);
  const repeated = repeatedIn(written, 'id').map(({ index, value, first }) => ({
    path: ['specs', index, 'id'], problem: `is ${value}, which spec no. ${first + 1} has already`,
  }));
  const within = written.flatMap((spec, index) => {
    const memory = mappingOf(spec['resources'])['memory'];
    const memoryBytes = typeof memory === 'string' ? parseQuantity(memory, sizeUnits) : null;
    const ofDocker = forDocker ? dockerConflicts({ image: spec['image'] ?? null, memoryBytes }) : [];
    const conflicts = [
      ...portConflicts(spec), ...readyConflicts(spec), ...agentConflicts(spec, protocols), ...plainSecrets(spec),
      ...variableConflicts(spec), ...ofDocker,
    ];
    return conflicts.map(({ path, problem }) => ({ path: ['specs', index, ...path], problem }));
  });
  return [...repeated, ...within];
}

/** Returns what keeps Docker from running a spec with this image and this memory. */
export function dockerConflicts({ image, memoryBytes }: { readonly image: unknown; readonly memoryBytes: number | null }): FieldProblem[] {
  const problems: FieldProblem[] = image === null ? [{ path: ['image'], problem: 'is missing, and Docker needs it' }] : [];
  if (memoryBytes === null || memoryBytes >= minMemoryBytes) return problems;
  const problem = `is less than ${formatQuantity(minMemoryBytes, sizeUnits)}, the least memory of a container in Docker`;
  return [...problems, { path: ['resources', 'memory'], problem }];
}

/** Returns true if the spec needs a feature that plain processes do not have. */
export function asksForContainer({ image, isolation, runtimeOptions }: SandboxSpec): boolean {
  return image !== null || isolation !== defaultIsolation || 'docker' in runtimeOptions;
}

/** Returns a warning for each rule of `rest` that counts from a state that no other rule leads to. */
export function restWarnings(specs: readonly SandboxSpec[] | null): readonly string[] {
  return (specs ?? []).flatMap(({ id, rest: { freezeAfterMs, stopAfterMs, deleteAfterMs } }) => {
    const warnings: string[] = [];
    if (stopAfterMs !== null && freezeAfterMs === null) {
      warnings.push(`spec ${id}: rest.stop_after counts from the freeze, and no rule freezes an idle sandbox; add freeze_after`);
    }
    if (deleteAfterMs !== null && stopAfterMs === null) {
      warnings.push(`spec ${id}: rest.delete_after counts from the stop, and no rule stops a frozen sandbox; add stop_after`);
    }
    return warnings;
  });
}

/** Returns the names of variables that are secrets of the specs, their starts or their agents. */
export function namedSecrets(specs: unknown): readonly unknown[] {
  return listOf(specs).map(mappingOf).flatMap(({ secrets, allowed_secrets: allowed, agent }) =>
    [...listOf(secrets), ...listOf(allowed), ...listOf(mappingOf(agent)['secrets'])]);
}

const plainSecret = 'looks like a credential, and everybody with an API key could read it; put the value into an environment variable of '
  + 'the server, and list that variable under secrets; if it is not a secret, set allow_plain_secrets: true';

/** Returns a problem for each secret that is written as plain text. The problem must not contain the value. */
function plainSecrets(spec: Keys): FieldProblem[] {
  if (spec['allow_plain_secrets'] === true) return [];
  const texts: readonly Located[] = [
    ...['initial_env', 'labels'].flatMap((field) =>
      Object.entries(mappingOf(spec[field])).map(([name, value]) => ({ value, path: [field, name] }))),
    ...elementsOf(spec['command'], ['command']),
    { value: spec['description'], path: ['description'] },
  ];
  const found = texts.filter(({ value }) => typeof value === 'string' && looksLikeCredential(value));
  return found.map(({ path }) => ({ path, problem: plainSecret }));
}

function variableConflicts(spec: Keys): FieldProblem[] {
  const { session_key_env: sessionKeyEnv = defaultSessionKeyEnv } = spec;
  const agent = mappingOf(spec['agent']);
  const names = Object.keys(mappingOf(spec['initial_env']));
  const agentNames = Object.keys(mappingOf(agent['env']));
  const reserved = names.filter((name) => isReservedVariable(name, { sessionKeyEnv, ports: listOf(spec['ports']) }));
  const settingNames = settings.map(({ variable }) => variable);
  const secrets = elementsOf(spec['secrets'], ['secrets']);
  const agentSecrets = elementsOf(agent['secrets'], ['agent', 'secrets']);
  const allSecrets = [...secrets, ...elementsOf(spec['allowed_secrets'], ['allowed_secrets']), ...agentSecrets];
  return [
    ...reserved.map((name) => ({ path: ['initial_env', name], problem: 'is a variable that Skep sets itself; remove it' })),
    ...namedIn(settingNames, allSecrets, "is one of the server's own settings, which sandboxes must not get; remove it"),
    ...namedIn([sessionKeyEnv], allSecrets, "is the sandbox's own key, session_key_env; rename one of them"),
    ...namedIn(names, secrets, 'is also in initial_env; keep one of the two'),
    ...namedIn(agentNames, agentSecrets, 'is also in agent.env; keep one of the two'),
  ];
}

/** Returns the problem for each of the texts that is one of the names. */
function namedIn(names: readonly unknown[], texts: readonly Located[], problem: string): FieldProblem[] {
  return texts.filter(({ value }) => typeof value === 'string' && names.includes(value)).map(({ path }) => ({ path, problem }));
}

/** A value in a spec, and where it is. */
interface Located extends Pick<FieldProblem, 'path'> {
  readonly value: unknown;
}

function elementsOf(list: unknown, path: FieldProblem['path']): readonly Located[] {
  return listOf(list).map((value, index) => ({ value, path: [...path, index] }));
}

function portConflicts(spec: Keys): FieldProblem[] {
  const ports = listOf(spec['ports']).map(mappingOf);
  const repeated = ['name', 'port'].flatMap((field) => repeatedIn(ports, field).map(({ index, value, first }) => ({
    path: ['ports', index, field], problem: `is ${value}, which ports[${first}] has already`,
  })));
  const variables = ports.map(({ name }) => (typeof name === 'string' ? { name, variable: portVariable(name) } : {}));
  const ambiguous = repeatedIn(variables, 'variable').flatMap(({ index, first }) => {
    const [name, earlier] = [variables[index]?.name, variables[first]?.name];
    const variable = portVariable(name ?? '');
    const problem = `is ${JSON.stringify(name)}, which has the same variable ${variable} as ports[${first}]; rename one of them`;
    return name === earlier ? [] : [{ path: ['ports', index, 'name'], problem }];
  });
  const conflicts = [...repeated, ...ambiguous];
  if (ports.length === 0 || mappingOf(spec['isolation'])['network'] !== 'none') return conflicts;
  return [...conflicts, { path: ['ports'], problem: 'can not be reached, because isolation.network is none; remove one of the two' }];
}

const atPort = (problem: string): FieldProblem[] => [{ path: ['ready', 'port'], problem }];

function readyConflicts(spec: Keys): FieldProblem[] {
  const { http, tcp, port } = mappingOf(spec['ready']);
  if (http !== undefined && tcp !== undefined) return [{ path: ['ready'], problem: 'has both http and tcp; keep one of them' }];
  if (http === undefined && tcp === undefined) return port === undefined ? [] : atPort('has no effect without http or tcp; add one');
  if (port === undefined) return atPort(`is missing, but ${http === undefined ? 'tcp' : 'http'} needs it`);
  const known = listOf(spec['ports']).map((entry) => mappingOf(entry)['port']);
  if (typeof port !== 'number' || known.includes(port)) return [];
  return atPort(`is ${port}, which is not a port of the spec${known.length === 0 ? ' (it has none)' : ''}`);
}

function agentConflicts(spec: Keys, protocols: readonly string[] | null): FieldProblem[] {
  const { protocol } = mappingOf(spec['agent']);
  if (protocols === null || typeof protocol !== 'string' || protocols.includes(protocol)) return [];
  const problem = `is ${JSON.stringify(protocol)}, which is not a known protocol; known: ${protocols.join(', ')}`;
  return [{ path: ['agent', 'protocol'], problem }];
}

/** Returns the mappings that repeat the field's value of an earlier one, with the index of the earlier one. */
function repeatedIn(mappings: readonly Keys[], field: string): { index: number; value: string; first: number }[] {
  const values = mappings.map((mapping) => mapping[field]);
  return values.flatMap((value, index) => {
    const first = values.indexOf(value);
    const isSimple = typeof value === 'string' || typeof value === 'number';
    return first < index && isSimple ? [{ index, value: JSON.stringify(value), first }] : [];
  });
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function mappingOf(value: unknown): Keys {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {};
}
