import type { Execution } from '../../ports/sandbox-runtime.ts';

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
