import { defaultRequestsPerMinute, defaultStreamsPerKey } from '../../adapters/http/http-options.ts';
import { defaultConnectionsPerSandbox } from '../../adapters/proxy/proxy-options.ts';
import { inCamelCase } from '../../adapters/shared/letter-case.ts';
import type { GitOptions } from '../skep-options.ts';
import { ConfigError, type ConfigProblem } from './config-error.ts';
import { type ConfigFile, readConfigFile } from './config-file.ts';
import { addressWarnings, unknownVariables } from './environment-warnings.ts';
import { configSchema, type SkepConfig } from './config-schema.ts';
import { fieldName, formAt, type Mistake, mistakesIn } from './config-mistakes.ts';
import { settings, settingsSchema } from './settings.ts';
import { toGitOptions, toSkepOptions } from './config-to-options.ts';
import { conflictsIn } from './spec-conflicts.ts';

/** Environment first, then the file that `SKEP_CONFIG` names, then defaults. Throws a {@link ConfigError} with every mistake at once. */
export function readConfig(env: NodeJS.ProcessEnv): SkepConfig {
  const file = readConfigFile(env['SKEP_CONFIG']);
  // An empty variable counts as absent, as in a compose file with `SKEP_X=${SKEP_X:-}`.
  const given = settings.filter(({ variable }) => (env[variable] ?? '') !== '');
  const values: Readonly<Record<string, unknown>> = {
    ...file.keys, ...Object.fromEntries(given.map(({ key, variable }) => [key, env[variable]])),
  };
  const variableOf = ({ path: [key] }: Mistake): string | undefined => given.find((setting) => setting.key === key)?.variable;
  const mistakes = distinct(mistakesIn(configSchema, values));
  const problems: ConfigProblem[] = mistakes.flatMap((mistake) => {
    const variable = variableOf(mistake);
    return variable === undefined ? [] : [{ name: variable, problem: mistake.problem, form: formAt(configSchema, mistake.path) }];
  });
  const conflicts = conflictsIn(file.keys['specs'], { imagesNeeded: values['sandbox_runtime'] === 'docker' });
  const inFile = [...misplacedIn(file), ...mistakes.filter((mistake) => variableOf(mistake) === undefined), ...conflicts];
  const git = gitOptions(values, mistakes, problems);
  // Which variables are secrets of specs is not known without the file.
  const unknown = file.problems.length > 0 ? [] : unknownVariables(env, file.keys['specs']);
  const ofFile = [...file.problems, ...problemsInFile(inFile, file)];
  // An unknown variable alone is only a warning, since it may be meant for another program.
  if (problems.length + ofFile.length > 0) throw new ConfigError([...problems, ...unknown, ...ofFile]);
  const config = configSchema.parse(values);
  const ownSettings = inCamelCase(settingsSchema.parse(values));
  const { specs = null, limits = {} } = config;
  return {
    ...ownSettings,
    options: toSkepOptions(config, git),
    specs,
    requestsPerMinute: limits.requests_per_minute === undefined ? defaultRequestsPerMinute : limits.requests_per_minute,
    streamsPerKey: limits.streams_per_key === undefined ? defaultStreamsPerKey : limits.streams_per_key,
    connectionsPerSandbox: limits.connections_per_sandbox === undefined ? defaultConnectionsPerSandbox : limits.connections_per_sandbox,
    keysInFile: Object.keys(file.keys),
    warnings: [...unknown.map(({ name, problem }) => `${name} ${problem}`), ...addressWarnings(ownSettings)],
  };
}

/** What is wrong between settings is looked for if each about git is right; a mistake in another one does not hide it. */
function gitOptions(
  values: Readonly<Record<string, unknown>>, mistakes: readonly Mistake[], problems: ConfigProblem[],
): readonly GitOptions[] {
  const wrong = new Set(mistakes.map(({ path: [key] }) => key));
  const right = Object.fromEntries(Object.entries(values).filter(([key]) => !wrong.has(key) || key.startsWith('git')));
  const { data: read } = settingsSchema.safeParse(right);
  return read?.git_providers.map((name) => toGitOptions(name, read, problems)) ?? [];
}

function misplacedIn({ keys }: ConfigFile): readonly Mistake[] {
  return Object.keys(keys).flatMap((key) => {
    const variable = key.toUpperCase().replace(/^(?!SKEP_)/, 'SKEP_');
    const meant = settings.find((setting) => setting.variable === variable);
    if (meant === undefined || (meant.key === key && !meant.isSecret)) return [];
    const problem = meant.isSecret ? `is a secret; set ${variable} in the environment instead` : `is called ${meant.key} in the file`;
    return [{ path: [key], problem, form: formAt(configSchema, [meant.key]) }];
  });
}

/** A field that is wrong in several ways is reported once. */
function distinct(mistakes: readonly Mistake[]): readonly Mistake[] {
  const fields = mistakes.map(({ path }) => JSON.stringify(path));
  return mistakes.filter((_, index) => fields.indexOf(fields[index] ?? '') === index);
}

/** Returns the problems of the file, from its top to its end. */
function problemsInFile(mistakes: readonly Mistake[], file: ConfigFile): readonly ConfigProblem[] {
  const twice = file.duplicates.map(({ key, line }) => ({
    line, name: key, problem: 'is written twice in one mapping; keep one of the two', form: 'one value',
  }));
  return distinct(mistakes)
    .map(({ path, problem, form = formAt(configSchema, path) }) => ({
      line: file.lineOf(path), name: fieldName(path, file.keys['specs']), problem, form,
    }))
    .concat(twice)
    .toSorted((a, b) => a.line - b.line)
    .map(({ line, ...problem }) => ({ ...problem, place: `${file.path}:${line}` }));
}
