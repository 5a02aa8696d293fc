import { toGitOptions } from './git-options.ts';
import { conflictsIn } from './conflicts.ts';
import { readConfigFile, type ConfigFile } from './config-file.ts';
import { toFileConfig, type SkepConfig } from './config.ts';
import { fieldName } from './field-name.ts';
import { fileSchema } from './file-schema.ts';
import { formAt } from './form.ts';
import { mistakesIn, unknownField, type Mistake } from './mistake.ts';
import { ConfigError, type ConfigProblem } from './problem.ts';
import { readSettings } from './read-settings.ts';
import { settings, type Settings } from './settings.ts';
import { unknownVariables } from './variables.ts';
import type { Environment } from './environment.ts';

/**
 * Reads the configuration: environment first, then the file that `SKEP_CONFIG` names, then defaults. Throws a
 * {@link ConfigError} with every mistake at once.
 */
export function loadConfig(env: Environment): SkepConfig {
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
