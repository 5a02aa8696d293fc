import type { Execution } from '../../../ports/sandbox-runtime.ts';
import { SnapshotRefusal } from '../../../ports/work-tree-snapshot.ts';
import { raceSignal } from '../../shared/timeout.ts';
import { refusalOf } from './snapshot-script.ts';

interface OutputLimit {
  readonly bytes: number;
  /** What the bytes are, for the refusal. */
  readonly of: string;
}

/** Reads the output of a command in a sandbox to its end. Kills the command, without waiting for its end, if the read fails. */
export async function readCommand<T>(
  execution: Execution, limit: OutputLimit, signal: AbortSignal, read: (output: AsyncGenerator<Uint8Array>) => Promise<T>,
): Promise<T> {
  try {
    return await read(outputOf(execution, limit, signal));
  } catch (error) {
    void execution.kill().catch(() => {});
    throw error;
  }
}

/** Ends when the command has succeeded. Throws a refusal if it fails, or writes too much. */
async function* outputOf(execution: Execution, limit: OutputLimit, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  const stderr = readStderr(execution.stderr).catch(() => 'the exit code says how it ended');
  execution.stdin.close().catch(() => 'it reads nothing');
  const reader = execution.stdout.getReader();
  let bytes = 0;
  for (;;) {
    const { value: chunk } = await raceSignal(reader.read(), signal);
    if (chunk === undefined) break;
    bytes += chunk.length;
    if (bytes > limit.bytes) throw new SnapshotRefusal({ code: 'too_large', limit: `${limit.bytes} bytes ${limit.of}` });
    yield chunk;
  }
  const refusal = refusalOf(await raceSignal(execution.exited, signal), await raceSignal(stderr, signal));
  if (refusal !== null) throw refusal;
}

const maxStderrBytes = 4096;

async function readStderr(stream: ReadableStream<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let stderr = '';
  for await (const chunk of stream) {
    if (stderr.length < maxStderrBytes) stderr += decoder.decode(chunk, { stream: true });
  }
  return stderr.slice(0, maxStderrBytes);
}
