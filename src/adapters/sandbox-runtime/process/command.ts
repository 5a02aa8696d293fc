import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { delimiter, isAbsolute, resolve } from 'node:path';
import type { SandboxLaunch } from '../../../ports/sandbox-runtime.ts';
import type { LaunchPlan } from './launch-records.ts';

type CommandResolution =
  | { readonly ok: true; readonly command: readonly [string, ...string[]] }
  | { readonly ok: false; readonly problem: string };

/**
 * Finds the program of a command, as a shell would: a name on the path, anything with a slash from the workspace. The
 * absolute path is what is run, so that no name means a builtin of the shell that runs it.
 */
export async function resolveCommand(
  command: readonly string[] | null,
  workspace: string,
  path: string,
): Promise<CommandResolution> {
  const [program, ...rest] = command ?? [];
  if (program === undefined || program === '') return refused('its spec has no command, and the process runtime runs no image');
  const candidates = program.includes('/')
    ? [resolve(workspace, program)]
    : path.split(delimiter).map((folder) => resolve(workspace, folder, program));
  let found = false;
  for (const candidate of candidates) {
    const isFile = await stat(candidate).then((entry) => entry.isFile(), () => false);
    const isExecutable = isFile && (await access(candidate, constants.X_OK).then(() => true, () => false));
    if (isExecutable && isAbsolute(candidate)) return { ok: true, command: [candidate, ...rest] };
    found ||= isFile;
  }
  return refused(`${found ? 'command not executable' : 'command not found'}: ${program}`);
}

function refused(problem: string): CommandResolution {
  return { ok: false, problem };
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** The variable by which the processes of a launch are known, wherever they went. */
export const markVariable = 'SKEP_SANDBOX_MARK';

/** Tells a leader's whole environment where the system shows it badly. The command does not get it. */
export const carrier = 'SKEP_LEADER_ENVIRONMENT';

/** Where programs are looked for when nobody says. */
const defaultPath = '/usr/local/bin:/usr/bin:/bin';

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
