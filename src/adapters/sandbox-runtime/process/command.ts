import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { delimiter, isAbsolute, resolve } from 'node:path';

export type CommandResolution =
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
