import { readFileSync, statSync } from 'node:fs';
import { YAMLParseError, parse } from 'yaml';
import { toFileConfig, type SkepConfig } from './config.ts';
import { fileForms, fileSchema, type FileConfig } from './file.ts';
import { ConfigError, type ConfigProblem } from './problem.ts';
import { settings, type Settings } from './settings.ts';

type Environment = Readonly<Record<string, string | undefined>>;
type Keys = Readonly<Record<string, unknown>>;

/**
 * Reads the configuration: environment first, then the file that `SKEP_CONFIG` names, then defaults. Throws a
 * {@link ConfigError} with every mistake at once.
 */
export function loadConfig(env: Environment): SkepConfig {
  const problems: ConfigProblem[] = [];
  const file = readFile(env['SKEP_CONFIG'], problems);
  const read = readSettings(env, file, problems);
  const keys = readKeys(file, problems);
  if (problems.length > 0 || read === null) throw new ConfigError(problems);
  return { ...read, ...toFileConfig(keys), warnings: unknownVariables(env, secretsOf(keys)) };
}

function readFile(path: string | undefined, problems: ConfigProblem[]): Keys {
  if (path === undefined || path === '') return {};
  const wrong = (problem: string): Keys => {
    problems.push({ name: 'SKEP_CONFIG', problem, form: 'the path of a YAML or JSON file with a mapping at its top, for example /etc/skep.yaml' });
    return {};
  };
  try {
    const keys: unknown = parse(readFileSync(path, 'utf8')) ?? {};
    return isMapping(keys) ? keys : wrong('has no mapping at its top');
  } catch (error) {
    if (error instanceof YAMLParseError) return wrong(`is not valid YAML: ${error.message.split('\n')[0]}`);
    return wrong(`can't be read (${codeOf(error)})`);
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
}

function isMapping(value: unknown): value is Keys {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function readSettings(env: Environment, file: Keys, problems: ConfigProblem[]): Settings | null {
  const before = problems.length;
  const read: Record<string, unknown> = {};
  for (const [name, { variable, key, schema, form }] of Object.entries(settings)) {
    // An empty variable counts as absent, as in a compose file with `SKEP_X=${SKEP_X:-}`.
    const fromEnv = env[variable] === '' ? undefined : env[variable];
    const fromFile = key === null ? undefined : file[key];
    const result = schema.safeParse(fromEnv ?? fromFile);
    const where = fromEnv === undefined && fromFile !== undefined ? `${key} in the file` : variable;
    if (result.success) read[name] = result.data;
    else problems.push({ name: where, problem: firstMessage(result.error.issues), form });
  }
  const { localGitRoot } = read;
  if (typeof localGitRoot === 'string' && !statSync(localGitRoot, { throwIfNoEntry: false })?.isDirectory()) {
    problems.push({ name: settings.localGitRoot.variable, problem: 'is not a folder', form: settings.localGitRoot.form });
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- each setting's own schema made its value
  return problems.length === before ? (read as Settings) : null;
}

function readKeys(file: Keys, problems: ConfigProblem[]): FileConfig {
  const known = new Set<string>([...Object.keys(fileForms), ...Object.values(settings).flatMap(({ key }) => key ?? [])]);
  for (const key of Object.keys(file)) {
    if (known.has(key)) continue;
    const secret = Object.values(settings).find(({ variable }) => variable === `SKEP_${key.toUpperCase()}`);
    const problem = secret === undefined ? 'is not a key that Skep knows' : `is a secret; set ${secret.variable} in the environment instead`;
    problems.push({ name: `${key} in the file`, problem, form: `one of ${[...known].toSorted().join(', ')}` });
  }
  const result = fileSchema.safeParse(file);
  if (result.success) return result.data;
  for (const issue of result.error.issues) {
    const [top] = issue.path;
    const form = isFileKey(top) ? fileForms[top] : 'what the documentation of the configuration file says';
    problems.push({ name: `${pathText(issue.path)} in the file`, problem: firstMessage([issue]), form });
  }
  return {};
}

function isFileKey(key: PropertyKey | undefined): key is keyof FileConfig {
  return typeof key === 'string' && Object.hasOwn(fileForms, key);
}

function pathText(path: readonly PropertyKey[]): string {
  return path.map((part, index) => (typeof part === 'number' ? `[${part}]` : `${index === 0 ? '' : '.'}${String(part)}`)).join('');
}

interface Issue {
  readonly code?: string;
  readonly message: string;
  readonly keys?: readonly string[];
  /** Of a key of a record that is wrong. */
  readonly issues?: readonly Issue[];
  /** Of each alternative that was not taken. */
  readonly errors?: readonly (readonly Issue[])[];
}

/** The first message, without the value: it may be a secret. */
function firstMessage([issue]: readonly Issue[]): string {
  if (issue === undefined) return 'is wrong';
  if (issue.code === 'unrecognized_keys') return `has an unknown key: ${issue.keys?.join(', ') ?? ''}`;
  if (issue.code === 'invalid_key') return `has a key that ${firstMessage(issue.issues ?? [])}`;
  // The last alternative is the form itself; those before it are single words.
  if (issue.code === 'invalid_union' && issue.message === 'Invalid input') return firstMessage(issue.errors?.at(-1) ?? []);
  return issue.message;
}

/** Variables that other programs give meaning to: those of a sandbox, and of the tests. */
const foreign = /^SKEP_(CONFIG|SANDBOX_ID|SANDBOX_MARK|WORKSPACE|PORT_.+|REQUIRE_.+|ENGINE_.+)$/;

/** The variables that agents are given. */
function secretsOf({ specs = [] }: FileConfig): readonly string[] {
  return specs.flatMap(({ agent }) => agent?.secrets ?? []);
}

function unknownVariables(env: Environment, secrets: readonly string[]): string[] {
  const known = new Set([...Object.values(settings).map(({ variable }) => variable), ...secrets]);
  return Object.keys(env)
    .filter((name) => name.startsWith('SKEP_') && !known.has(name) && !foreign.test(name))
    .map((name) => `${name} is set, but Skep knows no such variable`);
}
