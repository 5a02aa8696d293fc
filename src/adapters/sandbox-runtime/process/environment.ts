import type { SandboxLaunch } from '../../../ports/sandbox-runtime.ts';
import type { LaunchPlan } from './schema.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** The variable by which the processes of a launch are known, wherever they went. */
export const markVariable = 'SKEP_SANDBOX_MARK';

/** Tells a leader's whole environment where the system shows it badly. The command does not get it. */
export const carrier = 'SKEP_LEADER_ENVIRONMENT';

/** Where programs are looked for when nobody says. */
export const defaultPath = '/usr/local/bin:/usr/bin:/bin';

const passedOn = /^(?:PATH|LANG|LC_[A-Z]+|TZ|TMPDIR)$/;

/** What of the server's environment a sandbox gets: how to find programs and to speak, and no secret. */
export function passedEnvironment(server: Environment): { readonly PATH: string; readonly [name: string]: string } {
  const passed = Object.entries(server).filter(
    (entry): entry is [string, string] => passedOn.test(entry[0]) && entry[1] !== undefined,
  );
  return { PATH: defaultPath, ...Object.fromEntries(passed) };
}

/** The whole environment of a sandbox's command. What Skep says wins over what the spec says. */
export function sandboxEnvironment(
  server: Environment,
  { id, spec, sessionApiKey }: SandboxLaunch,
  workspace: string,
  { mark, ports }: LaunchPlan,
): Record<string, string> {
  return {
    ...passedEnvironment(server),
    HOME: workspace,
    ...spec.initialEnv,
    ...portVariables(ports),
    [spec.sessionKeyEnv]: sessionApiKey,
    SKEP_WORKSPACE: workspace,
    SKEP_SANDBOX_ID: id,
    [markVariable]: mark,
  };
}

function portVariables(ports: LaunchPlan['ports']): Record<string, string> {
  const variables = ports.flatMap(({ name, port, hostPort }) => [
    [`SKEP_PORT_${name.toUpperCase().replaceAll(/[^A-Z0-9]/g, '_')}`, String(hostPort)],
    [`SKEP_PORT_${port}`, String(hostPort)],
  ]);
  const [only, ...others] = ports;
  if (only !== undefined && others.length === 0) variables.push(['PORT', String(only.hostPort)]);
  return Object.fromEntries(variables);
}
