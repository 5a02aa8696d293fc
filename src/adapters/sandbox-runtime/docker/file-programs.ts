import { text } from 'node:stream/consumers';
import type { Execution, SandboxRuntime } from '../../../ports/sandbox-runtime.ts';

type Execute = SandboxRuntime['execute'];

/** Runs a program of the image in a running container, with the content as its input. Its output is bounded by what it is used for. */
export async function runProgram(
  execute: Execute, id: string, command: readonly string[], signal: AbortSignal, content: AsyncIterable<Uint8Array> | null = null,
): Promise<{ readonly exitCode: number | null; readonly error: string }> {
  const execution = await execute(id, { command, workingDir: '/' }, signal);
  const kill = (): void => void execution.kill().catch(() => {});
  signal.addEventListener('abort', kill);
  try {
    const output = Promise.all([execution.stdout.cancel(), text(execution.stderr)]);
    await feed(execution, content);
    const [, error] = await output;
    const exitCode = await execution.exited;
    signal.throwIfAborted();
    return { exitCode, error: error.trim() };
  } catch (error) {
    kill();
    throw error;
  } finally {
    signal.removeEventListener('abort', kill);
  }
}

/** Hands the content over. A program that reads no more says why by its exit code. */
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

/** Writes its input to the file `$1`, which gets the mode `$2`. */
export function writeCommand(path: string, mode: number): string[] {
  return ['/bin/sh', '-c', 'umask 077; cat > "$1" && chmod "$2" "$1"', 'skep-write', path, mode.toString(8)];
}
