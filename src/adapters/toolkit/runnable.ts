import type { ExecutionRequest } from '../../ports/sandbox-runtime.ts';

/** Why no system can run the command of a request, in words; null where one may. */
export function whyUnrunnable({ command, env = {} }: ExecutionRequest): string | null {
  if (command.length === 0 || command[0] === '') return 'the command has no program';
  if ([...command, ...Object.entries(env).flat()].some((text) => text.includes('\0'))) return 'the command or its environment holds a NUL character';
  const misnamed = Object.keys(env).find((name) => name === '' || name.includes('='));
  return misnamed === undefined ? null : `${JSON.stringify(misnamed)} is no name of an environment variable`;
}
