export interface ReachablePort {
  readonly name: string;
  /** The spec's port. */
  readonly port: number;
  /** The port that a program has to listen on. */
  readonly reachedAt: number;
}

/** The variables that tell a program its ports. They have the same names in every runtime, so that one command serves all. */
export function portVariables(ports: readonly ReachablePort[]): Record<string, string> {
  const variables = ports.flatMap(({ name, port, reachedAt }) => [
    [`SKEP_PORT_${name.toUpperCase().replaceAll(/[^A-Z0-9]/g, '_')}`, String(reachedAt)],
    [`SKEP_PORT_${port}`, String(reachedAt)],
  ]);
  const [only, ...others] = ports;
  if (only !== undefined && others.length === 0) variables.push(['PORT', String(only.reachedAt)]);
  return Object.fromEntries(variables);
}
