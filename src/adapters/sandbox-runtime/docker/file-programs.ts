import { Failure } from '../../../domain/failure.ts';
import type { Execution, SandboxRuntime } from '../../../ports/sandbox-runtime.ts';
import { raceSignal } from '../../shared/timeout.ts';
import { readText } from '../script-result.ts';
import { refusedFiles } from '../sandbox-path.ts';

type Execute = SandboxRuntime['execute'];

/** How long to wait for the end of a program. In a frozen container, it does not end. */
const killMs = 10_000;

/**
 * Runs a program of the image in a running container, with the content as its input. If the signal fires, the program is killed, and the
 * call rejects with the signal's reason.
 */
export async function runProgram(
  execute: Execute, id: string, command: readonly string[], signal: AbortSignal, content: AsyncIterable<Uint8Array> | null = null,
): Promise<{ readonly exitCode: number; readonly error: string }> {
  const execution = await execute(id, { command, workingDir: '/' }, signal);
  const work = async () => {
    const output = Promise.all([execution.stdout.cancel(), readText(execution.stderr, endless)]);
    await Promise.all([output, feed(execution, content)]);
    const [, error] = await output;
    const exitCode = await execution.exited;
    if (exitCode === null) throw new Failure('sandbox_not_running', { id, status: 'changing' });
    return { exitCode, error: error.trim() };
  };
  try {
    return await raceSignal(work(), signal);
  } catch (error) {
    await raceSignal(execution.kill(), AbortSignal.timeout(killMs)).catch(() => {});
    throw error;
  }
}

// The sandbox may have replaced the program.
const endless = (): Failure => refusedFiles('path', 'a program of the sandbox that is needed for it reports errors without end');

/** Writes the content to the program. If the program stops reading, its exit code shows why. */
async function feed({ stdin }: Execution, content: AsyncIterable<Uint8Array> | null): Promise<void> {
  const writer = stdin.getWriter();
  writer.closed.catch(() => {});
  let isRead = true;
  for await (const chunk of content ?? []) {
    await writer.write(chunk).catch(() => (isRead = false));
    if (!isRead) break;
  }
  await writer.close().catch(() => {});
}

/** Returns a command that copies the file `begunAs`, if given, and then its input into the file `$1`, with the mode `$2`. */
export function writeCommand(path: string, mode: number, begunAs: string | null): string[] {
  const script = 'umask 077; cat "$3" - > "$1" && chmod "$2" "$1"';
  return ['/bin/sh', '-c', script, 'skep-write', path, mode.toString(8), begunAs ?? '/dev/null'];
}
