import { ConfigError, type ConfigProblem, problemWith } from './config-error.ts';
import { type ConfigFile, readConfigFile } from './config-file.ts';
import { fileSchema, type SkepConfig } from './file-schema.ts';
import { unknownVariables } from './environment-warnings.ts';
import { fieldName, formAt, issuesOf, type Mistake, mistakesIn, problemOf, unknownField } from './mistakes.ts';
import { settings, settingsSchema } from './settings.ts';
import { toGitOptions, toSkepOptions } from './skep-options.ts';
import { conflictsIn } from './spec-conflicts.ts';

/**
 * Reads the configuration: environment first, then the file that `SKEP_CONFIG` names, then defaults. Throws a
 * {@link ConfigError} with every mistake at once.
 */
export function loadConfig(env: NodeJS.ProcessEnv): SkepConfig {
  const file = readConfigFile(env['SKEP_CONFIG']);
  const { values, problems, mistakes } = readSettings(env, file);
  const conflicts = conflictsIn(file.keys['specs'], { imagesNeeded: values['sandboxRuntime'] === 'docker' });
  const inFile = [...mistakes, ...unknownKeys(file), ...mistakesIn(file.keys), ...conflicts];
  // Contradictions between settings are looked for only if each of them is right by itself.
  const { data: read } = settingsSchema.safeParse(values);
  const git = read?.gitProviders.map((name) => toGitOptions(name, read, problems)) ?? [];
  const all = [...file.problems, ...problems, ...problemsInFile(inFile, file)];
  if (all.length > 0 || read === undefined) throw new ConfigError(all);
  const keys = fileSchema.parse(file.keys);
  const specs = keys.specs ?? null;
  return {
    ...read,
    options: toSkepOptions(read, git, keys),
    specs,
    requestsPerMinute: keys.limits?.requests_per_minute ?? null,
    warnings: unknownVariables(env, specs),
  };
}

const settingKeys = Object.values(settings).flatMap(({ key }) => key ?? []);

function unknownKeys({ keys }: ConfigFile): readonly Mistake[] {
  const known = new Set([...settingKeys, ...Object.keys(fileSchema.shape)]);
  return Object.keys(keys).filter((key) => !known.has(key)).map((key) => {
    const variable = key.toUpperCase().replace(/^(?!SKEP_)/, 'SKEP_');
    const meant = Object.values(settings).find((setting) => setting.variable === variable);
    if (meant === undefined) return unknownField([], key, settingKeys);
    const problem = meant.key === null ? `is a secret; set ${variable} in the environment instead` : `is called ${meant.key} in the file`;
    return { path: [key], problem, form: meant.form };
  });
}

/** Returns the problems of the file, from its top to its end. A field that is wrong in several ways is reported once. */
function problemsInFile(mistakes: readonly Mistake[], file: ConfigFile): readonly ConfigProblem[] {
  const fields = mistakes.map(({ path }) => JSON.stringify(path));
  const twice = file.duplicates.map(({ key, line }) => ({
    line, name: key, problem: 'is written twice in one mapping; keep one of the two', form: 'one value',
  }));
  return mistakes
    .filter((_, index) => fields.indexOf(fields[index] ?? '') === index)
    .map(({ path, problem, form = formAt(path) }) => ({
      line: file.lineOf(path), name: fieldName(path, file.keys['specs']), problem, form,
    }))
    .concat(twice)
    .toSorted((a, b) => a.line - b.line)
    .map(({ line, ...problem }) => ({ ...problem, place: `${file.path}:${line}` }));
}

interface GivenSettings {
  /** What is given for each setting, by its name. */
  readonly values: Readonly<Record<string, unknown>>;
  /** The problems of the environment. */
  readonly problems: ConfigProblem[];
  readonly mistakes: readonly Mistake[];
}

/** Reads each setting from the environment, else from the file. */
function readSettings(env: NodeJS.ProcessEnv, { keys }: ConfigFile): GivenSettings {
  const values: Record<string, unknown> = {};
  const problems: ConfigProblem[] = [];
  const mistakes: Mistake[] = [];
  for (const [name, setting] of Object.entries(settings)) {
    const { variable, key, schema, form } = setting;
    // An empty variable counts as absent, as in a compose file with `SKEP_X=${SKEP_X:-}`.
    const fromEnv = env[variable] === '' ? undefined : env[variable];
    const value = fromEnv ?? (key === null ? undefined : keys[key]);
    values[name] = value;
    const [issue] = issuesOf(schema, value);
    if (issue === undefined) continue;
    const problem = problemOf(issue, value, key === null);
    if (fromEnv === undefined && key !== null) mistakes.push({ path: [key], problem, form });
    else problems.push(problemWith(setting, problem));
  }
  return { values, problems, mistakes };
}
