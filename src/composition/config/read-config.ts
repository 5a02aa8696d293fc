import { readFileSync } from 'node:fs';
import { defaultRequestsPerMinute, defaultStreamsPerKey } from '../../adapters/http/http-options.ts';
import { defaultConnectionsPerSandbox } from '../../adapters/proxy/proxy-options.ts';
import { inCamelCase } from '../../adapters/shared/snake-case.ts';
import { ConfigError, type ConfigProblem } from './config-error.ts';
import { type ConfigFile, readConfigFile } from './config-file.ts';
import { addressWarnings, outgoingProxyWarnings, unknownVariables } from './environment-warnings.ts';
import { configSchema, type SkepConfig } from './config-schema.ts';
import { fieldAt, type FieldProblem, problemsIn, toConfigProblem } from './field-problems.ts';
import { settingConflicts } from './setting-conflicts.ts';
import { type GivenSettings, settings, settingsSchema, variableOf } from './settings.ts';
import { toSkepOptions } from './config-to-options.ts';
import { conflictsIn, restWarnings } from './spec-conflicts.ts';

/** Reads the environment first, then the file in `SKEP_CONFIG`, then defaults. Throws a {@link ConfigError} with all problems. */
export function readConfig(env: NodeJS.ProcessEnv): SkepConfig {
  const file = readConfigFile(env['SKEP_CONFIG']);
  const { specs: writtenSpecs } = file.keys;
  // An empty variable counts as missing, for compose files with `SKEP_X=${SKEP_X:-}`.
  const given = settings.filter(({ variable }) => (env[variable] ?? '') !== '');
  const values: Readonly<Record<string, unknown>> = {
    ...file.keys, ...Object.fromEntries(given.map(({ key, variable }) => [key, env[variable]])),
  };
  const ofSchema = problemsIn(configSchema, values);
  const comparable = comparableSettings(values, ofSchema);
  const appKey = comparable?.git_providers.includes('github') === true ? readPrivateKey(comparable.github_app_key_file) : null;
  const problems = [...ofSchema, ...(comparable === null ? [] : settingConflicts(comparable, appKey))];
  const isInFile = ({ path: [key = ''] }: FieldProblem): boolean =>
    Object.hasOwn(file.keys, key) && given.every((setting) => setting.key !== key);
  const ofEnvironment = distinct(problems.filter((each) => !isInFile(each))).map((each): ConfigProblem =>
    ({ ...toConfigProblem(configSchema, each, null), name: variableOf(String(each.path[0])) }));
  const conflicts = conflictsIn(writtenSpecs, values['sandbox_runtime'] === 'docker');
  const ofFile = [...file.problems, ...problemsInFile([...misplacedIn(file), ...problems.filter(isInFile), ...conflicts], file)];
  // Without the file, the names of the specs' secrets are not known.
  const unknown = file.problems.length > 0 ? [] : unknownVariables(env, writtenSpecs);
  // An unknown variable alone is only a warning, because it may be for another program.
  if (ofEnvironment.length + ofFile.length > 0) throw new ConfigError([...ofEnvironment, ...unknown, ...ofFile]);
  const config = configSchema.parse(values);
  const ownSettings = inCamelCase(settingsSchema.parse(values));
  const {
    requestsPerMinute = defaultRequestsPerMinute, streamsPerKey = defaultStreamsPerKey,
    connectionsPerSandbox = defaultConnectionsPerSandbox,
  } = inCamelCase(config.limits);
  return {
    ...ownSettings,
    options: toSkepOptions(config, appKey),
    specs: config.specs ?? null,
    requestsPerMinute,
    streamsPerKey,
    connectionsPerSandbox,
    sources: { ...sourcesOf(Object.keys(file.keys), 'file'), ...sourcesOf(given.map(({ key }) => key), 'environment') },
    warnings: [
      ...unknown.map(({ name, problem }) => `${name} ${problem}`), ...addressWarnings(ownSettings),
      ...outgoingProxyWarnings(env, ownSettings), ...restWarnings(config.specs ?? null),
    ],
  };
}

function sourcesOf(keys: readonly string[], source: 'environment' | 'file'): SkepConfig['sources'] {
  return Object.fromEntries(keys.map((key) => [key, source]));
}

/**
 * Returns the settings that can be compared with each other. Problems of other settings do not hide conflicts, so those have their default.
 * Null if a git setting has a problem.
 */
function comparableSettings(values: Readonly<Record<string, unknown>>, problems: readonly FieldProblem[]): GivenSettings | null {
  const wrong = new Set(problems.map(({ path: [key] }) => key));
  const right = Object.fromEntries(Object.entries(values).filter(([key]) => !wrong.has(key) || key.startsWith('git')));
  return settingsSchema.safeParse(right).data ?? null;
}

/** Returns null if no file is named, or if it has no private key. */
function readPrivateKey(path: string | undefined): string | null {
  if (path === undefined) return null;
  try {
    const text = readFileSync(path, 'utf8');
    return text.includes('PRIVATE KEY-----') ? text : null;
  } catch {
    return null;
  }
}

function misplacedIn({ keys }: ConfigFile): readonly FieldProblem[] {
  return Object.keys(keys).flatMap((key) => {
    const variable = variableOf(key.replace(/^SKEP_/i, ''));
    const meant = settings.find((setting) => setting.variable === variable);
    if (meant === undefined || (meant.key === key && !meant.isSecret)) return [];
    const problem = meant.isSecret ? `is a secret; set ${variable} in the environment instead` : `must be named ${meant.key} in the file`;
    return [{ path: [key], problem, form: fieldAt(configSchema, [meant.key]).form }];
  });
}

/** Keeps one problem for each field. */
function distinct(problems: readonly FieldProblem[]): readonly FieldProblem[] {
  return [...Map.groupBy(problems, ({ path }) => JSON.stringify(path)).values()].flatMap((same) => same.slice(0, 1));
}

/** Returns the problems of the file in the order of its lines. */
function problemsInFile(problems: readonly FieldProblem[], file: ConfigFile): readonly ConfigProblem[] {
  const twice = file.duplicates.map(({ key, line }) => ({
    line, name: key, problem: 'is written twice in one mapping; keep one of the two', form: 'one value',
  }));
  return distinct(problems)
    .map((each) => ({ line: file.lineOf(each.path), ...toConfigProblem(configSchema, each, file.keys['specs']) }))
    .concat(twice)
    .toSorted((a, b) => a.line - b.line)
    .map(({ line, ...problem }) => ({ ...problem, place: `${file.path}:${line}` }));
}
