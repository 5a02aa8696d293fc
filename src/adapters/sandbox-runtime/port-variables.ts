export function portVariable(name: string): string {
  return `SKEP_PORT_${name.toUpperCase().replaceAll(/[^A-Z0-9]/g, '_')}`;
}

/**
 * Returns the environment variables with a program's ports. All runtimes use the same names, so one command works in each. `port` is that
 * of the spec, `reachedAt` the one that a program has to listen on.
 */
export function portVariables(
  ports: readonly { readonly name: string; readonly port: number; readonly reachedAt: number }[],
): Record<string, string> {
  const variables = ports.flatMap(({ name, port, reachedAt }) => [
    [portVariable(name), String(reachedAt)],
    [`SKEP_PORT_${port}`, String(reachedAt)],
  ]);
  const [only, ...others] = ports;
  if (only !== undefined && others.length === 0) variables.push(['PORT', String(only.reachedAt)]);
  return Object.fromEntries(variables);
}
