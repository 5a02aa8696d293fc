/** A problem as people read it. Most are made of a `FieldProblem`, by `toConfigProblem`. */
export interface ConfigProblem {
  /** The environment variable, or the field of the file. */
  readonly name: string;
  /** The rest of a sentence that begins with the name: `is missing`. */
  readonly problem: string;
  /** The accepted values, with an example. */
  readonly form: string;
  /** The file and the line: `skep.yaml:7`. */
  readonly place?: string;
}

/** A configuration with problems. The message lists all of them, and contains no secret. */
export class ConfigError extends Error {
  readonly problems: readonly ConfigProblem[];

  constructor(problems: readonly ConfigProblem[]) {
    const lines = problems.map(({ name, problem, form, place }) => {
      const field = place === undefined ? name : `${name} (${place})`;
      return `  ${field}: ${problem}\n      allowed: ${form}`;
    });
    const count = problems.length === 1 ? 'a mistake' : `${problems.length} mistakes`;
    super(`The configuration has ${count}. Nothing was started.\n${lines.join('\n')}`);
    this.name = 'ConfigError';
    this.problems = problems;
  }
}
