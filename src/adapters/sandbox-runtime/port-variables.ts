interface ReachablePort {
  readonly name: string;
  readonly port: number;
  /** The port that a program has to listen on. */
  readonly reachedAt: number;
}

export function portVariable(name: string): string {
  return `SKEP_PORT_${name.toUpperCase().replaceAll(/[^A-Z0-9]/g, '_')}`;
}

/** Returns the environment variables with a program's ports. All runtimes use the same names, so one command works in each. */
export function portVariables(ports: readonly ReachablePort[]): Record<string, string> {
  const variables = ports.flatMap(({ name, port, reachedAt }) => [
    [portVariable(name), String(reachedAt)],
    [`SKEP_PORT_${port}`, String(reachedAt)],
  ]);
  const [only, ...others] = ports;
  if (only !== undefined && others.length === 0) variables.push(['PORT', String(only.reachedAt)]);
  return Object.fromEntries(variables);
}
