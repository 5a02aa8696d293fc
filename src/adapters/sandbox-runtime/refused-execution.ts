import type { Execution, ExecutionRequest } from '../../ports/sandbox-runtime.ts';

/** An execution of a command that can't be run: it has ended already, and says why on its standard error. */
export function refusedExecution(exitCode: 126 | 127, reason: string): Execution {
  return {
    stdin: new WritableStream({
      write: () => {
        throw new Error('the command reads no more');
      },
    }),
    stdout: ReadableStream.from<Uint8Array>([]),
    stderr: ReadableStream.from([new TextEncoder().encode(`${reason}\n`)]),
    exited: Promise.resolve(exitCode),
    kill: async () => {},
  };
}

/** Why no system can run the command of a request, in words; null where one may. */
export function whyUnrunnable({ command, env = {} }: ExecutionRequest): string | null {
  if (command.length === 0 || command[0] === '') return 'the command has no program';
  if ([...command, ...Object.entries(env).flat()].some((text) => text.includes('\0'))) return 'the command or its environment holds a NUL character';
  const misnamed = Object.keys(env).find((name) => name === '' || name.includes('='));
  return misnamed === undefined ? null : `${JSON.stringify(misnamed)} is no name of an environment variable`;
}
