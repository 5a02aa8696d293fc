import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { delimiter, resolve } from 'node:path';
import type { Reason } from '../../../domain/reason.ts';
import type { SandboxLaunch } from '../../../ports/sandbox-runtime.ts';
import { portVariables } from '../port-variables.ts';
import type { LaunchPlan } from './launch-records.ts';

/**
 * Finds the program of a command as a shell would: a plain name on the path, a name with a slash relative to the workspace. Returns an
 * absolute path, so that the launcher's shell does not run a builtin of the same name.
 */
export async function resolveCommand(
  command: readonly string[] | null, workspace: string, path: string,
): Promise<{ readonly command: readonly [string, ...string[]] } | { readonly refused: Reason }> {
  const [program, ...rest] = command ?? [];
  if (program === undefined || program === '') return { refused: { code: 'command_not_named' } };
  const folders = program.includes('/') ? ['.'] : path.split(delimiter);
  let isThere = false;
  for (const folder of folders) {
    const candidate = resolve(workspace, folder, program);
    const isFile = await stat(candidate).then((entry) => entry.isFile(), () => false);
    const isExecutable = isFile && (await access(candidate, constants.X_OK).then(() => true, () => false));
    if (isExecutable) return { command: [candidate, ...rest] };
    isThere ||= isFile;
  }
  return { refused: { code: isThere ? 'command_not_executable' : 'command_not_found', command: program } };
}

export const markVariable = 'SKEP_SANDBOX_MARK';

/** Contains a leader's whole environment on systems that do not show it clearly. The command does not get it. */
export const environmentVariable = 'SKEP_LEADER_ENVIRONMENT';

const defaultPath = '/usr/local/bin:/usr/bin:/bin';

const passedVariables = /^(?:PATH|LANG|LC_[A-Z]+|TZ|TMPDIR)$/;

/** Returns the part of the server's environment for a sandbox: the path, the language and the time zone, but no secret. */
export function passedEnvironment(): { readonly PATH: string; readonly [name: string]: string } {
  const passed = Object.entries(process.env).filter((entry): entry is [string, string] => passedVariables.test(entry[0]));
  return { PATH: defaultPath, ...Object.fromEntries(passed) };
}

/** Returns the whole environment of a sandbox's command. Skep's own variables win over those of the spec. */
export function sandboxEnvironment(
  { id, spec, sessionApiKey, secrets = {} }: SandboxLaunch, { workspace, home }: { readonly workspace: string; readonly home: string },
  { mark, ports }: LaunchPlan,
): Record<string, string> {
  return {
    ...passedEnvironment(),
    HOME: home,
    ...spec.initialEnv,
    ...secrets,
    ...portVariables(ports.map(({ name, port, hostPort }) => ({ name, port, reachedAt: hostPort }))),
    [spec.sessionKeyEnv]: sessionApiKey,
    SKEP_WORKSPACE: workspace,
    SKEP_SANDBOX_ID: id,
    [markVariable]: mark,
  };
}
