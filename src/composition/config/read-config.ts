import { defaultRequestsPerMinute, defaultStreamsPerKey } from '../../adapters/http/http-options.ts';
import { defaultConnectionsPerSandbox } from '../../adapters/proxy/proxy-options.ts';
import { inCamelCase } from '../../adapters/shared/snake-case.ts';
import type { GitOptions } from '../skep-options.ts';
import { ConfigError, type ConfigProblem } from './config-error.ts';
import { type ConfigFile, readConfigFile } from './config-file.ts';
import { addressWarnings, outgoingProxyWarnings, unknownVariables } from './environment-warnings.ts';
import { configSchema, type SkepConfig } from './config-schema.ts';
import { fieldAt, type Mistake, mistakesIn, toProblem } from './config-mistakes.ts';
import { settings, settingsSchema, variableOf } from './settings.ts';
import { toGitOptions, toSkepOptions } from './config-to-options.ts';
import { conflictsIn, restWarnings } from './spec-conflicts.ts';

/** Reads the environment first, then the file in `SKEP_CONFIG`, then defaults. Throws a {@link ConfigError} with all mistakes. */
export function readConfig(env: NodeJS.ProcessEnv): SkepConfig {
  const file = readConfigFile(env['SKEP_CONFIG']);
  const { specs: writtenSpecs } = file.keys;
  // An empty variable counts as missing, for compose files with `SKEP_X=${SKEP_X:-}`.
  const given = settings.filter(({ variable }) => (env[variable] ?? '') !== '');
  const values: Readonly<Record<string, unknown>> = {
    ...file.keys, ...Object.fromEntries(given.map(({ key, variable }) => [key, env[variable]])),
  };
  const mistakes = [...mistakesIn(configSchema, values)];
  const git = gitOptions(values, mistakes);
  const isInFile = ({ path: [key = ''] }: Mistake): boolean =>
    Object.hasOwn(file.keys, key) && given.every((setting) => setting.key !== key);
  const ofEnvironment = distinct(mistakes.filter((mistake) => !isInFile(mistake))).map((mistake): ConfigProblem =>
    ({ ...toProblem(configSchema, mistake, null), name: variableOf(String(mistake.path[0])) }));
  const conflicts = conflictsIn(writtenSpecs, values['sandbox_runtime'] === 'docker');
  const ofFile = [...file.problems, ...problemsInFile([...misplacedIn(file), ...mistakes.filter(isInFile), ...conflicts], file)];
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
    options: toSkepOptions(config, git),
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

/** Adds contradictions between settings, if each git setting is correct by itself. Mistakes in other settings do not hide them. */
function gitOptions(values: Readonly<Record<string, unknown>>, mistakes: Mistake[]): readonly GitOptions[] {
  const wrong = new Set(mistakes.map(({ path: [key] }) => key));
  const right = Object.fromEntries(Object.entries(values).filter(([key]) => !wrong.has(key) || key.startsWith('git')));
  const { data: read } = settingsSchema.safeParse(right);
  if (read === undefined) return [];
  if (read.proxy_port === read.port && read.port !== 0) {
    mistakes.push({ path: ['proxy_port'], problem: 'is the port of the API too (SKEP_PORT); the proxy needs another one' });
  }
  return read.git_providers.map((name) => toGitOptions(name, read, mistakes));
}

function misplacedIn({ keys }: ConfigFile): readonly Mistake[] {
  return Object.keys(keys).flatMap((key) => {
    const variable = variableOf(key.replace(/^SKEP_/i, ''));
    const meant = settings.find((setting) => setting.variable === variable);
    if (meant === undefined || (meant.key === key && !meant.isSecret)) return [];
    const problem = meant.isSecret ? `is a secret; set ${variable} in the environment instead` : `must be named ${meant.key} in the file`;
    return [{ path: [key], problem, form: fieldAt(configSchema, [meant.key]).form }];
  });
}

/** Keeps one mistake for each field. */
function distinct(mistakes: readonly Mistake[]): readonly Mistake[] {
  return [...Map.groupBy(mistakes, ({ path }) => JSON.stringify(path)).values()].flatMap((same) => same.slice(0, 1));
}

/** Returns the problems of the file in the order of its lines. */
function problemsInFile(mistakes: readonly Mistake[], file: ConfigFile): readonly ConfigProblem[] {
  const twice = file.duplicates.map(({ key, line }) => ({
    line, name: key, problem: 'is written twice in one mapping; keep one of the two', form: 'one value',
  }));
  return distinct(mistakes)
    .map((mistake) => ({ line: file.lineOf(mistake.path), ...toProblem(configSchema, mistake, file.keys['specs']) }))
    .concat(twice)
    .toSorted((a, b) => a.line - b.line)
    .map(({ line, ...problem }) => ({ ...problem, place: `${file.path}:${line}` }));
}
