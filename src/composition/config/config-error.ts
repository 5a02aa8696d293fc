/** One mistake in the configuration. */
export interface ConfigProblem {
  /** The variable, or the field of the file. */
  readonly name: string;
  /** The rest of a sentence that begins with the name. */
  readonly problem: string;
  /** What it takes, with an example. */
  readonly form: string;
  /** The file and the line: `skep.yaml:7`. */
  readonly place?: string;
}

/** A mistake in a setting that is of its form by itself. */
export function problemWith({ variable, form }: { readonly variable: string; readonly form: string }, problem: string): ConfigProblem {
  return { name: variable, problem, form };
}

/** A configuration that nothing is started with. Its message lists every mistake; it holds no value of a secret. */
export class ConfigError extends Error {
  readonly problems: readonly ConfigProblem[];

  constructor(problems: readonly ConfigProblem[]) {
    const lines = problems.map(({ name, problem, form, place }) => `  ${name}${place === undefined ? '' : ` (${place})`}: ${problem}\n      takes ${form}`);
    super(`The configuration has ${problems.length === 1 ? 'a mistake' : `${problems.length} mistakes`}; nothing was started.\n${lines.join('\n')}`);
    this.name = 'ConfigError';
    this.problems = problems;
  }
}
