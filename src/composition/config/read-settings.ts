import { statSync } from 'node:fs';
import type { ConfigFile } from './config-file.ts';
import { issuesOf, problemOf } from './issue.ts';
import type { Mistake } from './mistake.ts';
import { problemWith, type ConfigProblem } from './problem.ts';
import { settings, type Settings } from './settings.ts';
import type { Environment } from './environment.ts';

export interface ReadSettings {
  /** Those that are of their form. */
  readonly read: Partial<Settings>;
  /** What is wrong in the environment. */
  readonly problems: readonly ConfigProblem[];
  /** What is wrong in the file. */
  readonly mistakes: readonly Mistake[];
}

/** The settings: each from the environment, else from the file, else its default. */
export function readSettings(env: Environment, { keys }: ConfigFile): ReadSettings {
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
