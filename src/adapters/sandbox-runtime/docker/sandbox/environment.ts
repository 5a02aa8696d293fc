import type { SandboxPort } from '../../../../domain/sandbox-spec.ts';
import type { SandboxLaunch } from '../../../../ports/sandbox-runtime.ts';

/** The environment of a sandbox's command, as the engine takes it. What Skep says wins over what the spec says. */
export function environment({ id, spec, sessionApiKey }: SandboxLaunch): string[] {
  const variables = {
    ...spec.initialEnv,
    ...portVariables(spec.ports),
    [spec.sessionKeyEnv]: sessionApiKey,
    SKEP_WORKSPACE: spec.workingDir,
    SKEP_SANDBOX_ID: id,
  };
  return Object.entries(variables).map(([name, value]) => `${name}=${value}`);
}

/** The same variables as where sandboxes share the host's ports, so that one command runs in both. */
function portVariables(ports: readonly SandboxPort[]): Record<string, string> {
  const variables = ports.flatMap(({ name, port }) => [
    [`SKEP_PORT_${name.toUpperCase().replaceAll(/[^A-Z0-9]/g, '_')}`, String(port)],
    [`SKEP_PORT_${port}`, String(port)],
  ]);
  const [only, ...others] = ports;
  if (only !== undefined && others.length === 0) variables.push(['PORT', String(only.port)]);
  return Object.fromEntries(variables);
}
