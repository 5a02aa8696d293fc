/** One mistake in the configuration. */
export interface ConfigProblem {
  /** The variable or the key of the file. */
  readonly name: string;
  readonly problem: string;
  /** What it takes, with an example. */
  readonly form: string;
}

/** A mistake in a setting that is of its form by itself. */
export function problemWith({ variable, form }: { readonly variable: string; readonly form: string }, problem: string): ConfigProblem {
  return { name: variable, problem, form };
}

/** A configuration that nothing is started with. Its message lists every mistake; it holds no value of a secret. */
export class ConfigError extends Error {
  readonly problems: readonly ConfigProblem[];

  constructor(problems: readonly ConfigProblem[]) {
    const lines = problems.map(({ name, problem, form }) => `  ${name}: ${problem}\n      takes ${form}`);
    super(`The configuration has ${problems.length === 1 ? 'a mistake' : `${problems.length} mistakes`}; nothing was started.\n${lines.join('\n')}`);
    this.name = 'ConfigError';
    this.problems = problems;
  }
}
