import { statSync } from 'node:fs';
import { ConfigError, type ConfigProblem, problemWith } from './config-error.ts';
import { type ConfigFile, readConfigFile } from './config-file.ts';
import { fileSchema, type SkepConfig, toFileConfig } from './config.ts';
import { unknownVariables } from './environment-warnings.ts';
import { formAt } from './form.ts';
import { fieldName, issuesOf, type Mistake, mistakesIn, problemOf, unknownField } from './mistakes.ts';
import { settings, type Settings } from './settings.ts';
import { toGitOptions } from './skep-options.ts';
import { conflictsIn } from './spec-conflicts.ts';

/**
 * Reads the configuration: environment first, then the file that `SKEP_CONFIG` names, then defaults. Throws a
 * {@link ConfigError} with every mistake at once.
 */
export function loadConfig(env: NodeJS.ProcessEnv): SkepConfig {
  const file = readConfigFile(env['SKEP_CONFIG']);
  const { read, problems, mistakes } = readSettings(env, file);
  const inFile = [...file.mistakes, ...mistakes, ...unknownKeys(file), ...mistakesIn(fileSchema, file.keys), ...conflictsIn(file.keys['specs'], { imagesNeeded: read.sandboxRuntime === 'docker' })];
  const all = [...file.problems, ...problems, ...between(read), ...told(inFile, file)];
  if (all.length > 0) throw new ConfigError(all);
  const keys = toFileConfig(fileSchema.parse(file.keys));
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- none of them is wrong, so each was read
  return { ...(read as Settings), ...keys, warnings: unknownVariables(env, keys.specs) };
}

/** What is wrong between settings. Where one is wrong by itself, the others say nothing. */
function between(read: Partial<Settings>): readonly ConfigProblem[] {
  const problems: ConfigProblem[] = [];
  if (!Object.keys(settings).every((name) => name in read)) return problems;
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- each was read
  for (const name of read.gitProviders ?? []) toGitOptions(name, read as Settings, problems);
  return problems;
}

const settingKeys = Object.values(settings).flatMap(({ key }) => key ?? []);

function unknownKeys({ keys }: ConfigFile): readonly Mistake[] {
  const known = new Set([...settingKeys, ...Object.keys(fileSchema.shape)]);
  return Object.keys(keys).filter((key) => !known.has(key)).map((key) => {
    const variable = key.toUpperCase().replace(/^(?!SKEP_)/, 'SKEP_');
    const meant = Object.values(settings).find((setting) => setting.variable === variable);
    if (meant === undefined) return unknownField(fileSchema, [], key, settingKeys);
    return { path: [key], problem: meant.key === null ? `is a secret; set ${variable} in the environment instead` : `is called ${meant.key} in the file`, form: meant.form };
  });
}

/** What is wrong in the file, from its top to its end; a field that is wrong in several ways is told of once. */
function told(mistakes: readonly Mistake[], file: ConfigFile): readonly ConfigProblem[] {
  const fields = mistakes.map(({ path }) => JSON.stringify(path));
  return mistakes
    .filter((_, index) => fields.indexOf(fields[index] ?? '') === index)
    .map((mistake) => ({ ...mistake, line: file.lineOf(mistake.path) }))
    .toSorted((a, b) => a.line - b.line)
    .map(({ path, problem, form, line }) => ({
      name: fieldName(path, file.keys['specs']),
      place: `${file.path}:${line}`,
      problem,
      form: form ?? formAt(fileSchema, path).takes,
    }));
}

interface ReadSettings {
  /** Those that are of their form. */
  readonly read: Partial<Settings>;
  /** What is wrong in the environment. */
  readonly problems: readonly ConfigProblem[];
  /** What is wrong in the file. */
  readonly mistakes: readonly Mistake[];
}

/** The settings: each from the environment, else from the file, else its default. */
function readSettings(env: NodeJS.ProcessEnv, { keys }: ConfigFile): ReadSettings {
  const read: Record<string, unknown> = {};
  const problems: ConfigProblem[] = [];
  const mistakes: Mistake[] = [];
  for (const [name, setting] of Object.entries(settings)) {
    const { variable, key, schema, form } = setting;
    // An empty variable counts as absent, as in a compose file with `SKEP_X=${SKEP_X:-}`.
    const fromEnv = env[variable] === '' ? undefined : env[variable];
    const value = fromEnv ?? (key === null ? undefined : keys[key]);
    const result = schema.safeParse(value);
    const problem = result.success ? misplaced(name, result.data) : problemOf(issuesOf(schema, value)[0] ?? { path: [], message: 'is wrong' }, value, key === null);
    if (problem === null) read[name] = result.data;
    else if (fromEnv === undefined && key !== null && value !== undefined) mistakes.push({ path: [key], problem, form });
    else problems.push(problemWith(setting, problem));
  }
  return { read, problems, mistakes };
}

/** What a form alone does not tell. */
function misplaced(name: string, value: unknown): string | null {
  if (name !== ('localGitRoot' satisfies keyof Settings) || typeof value !== 'string') return null;
  return statSync(value, { throwIfNoEntry: false })?.isDirectory() === true ? null : `is ${JSON.stringify(value)}, which is not a folder`;
}
