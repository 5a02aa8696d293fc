import { Failure } from '../../domain/failure.ts';
import { raceSignal } from '../../ports/abort-signals.ts';
import type { Execution } from '../../ports/sandbox-runtime.ts';
import { readAtMost } from '../shared/node-streams.ts';
import { realTimers, startTimeout, withTimeout } from '../shared/timeout.ts';
import type { ExecutionHost } from './execution-host.ts';

/** Longer than any script that does not wait. */
const limitMs = 20_000;
/** More than the output of any script. */
const maxBytes = 64 << 10;

export const noScriptResult = new Failure('runtime_unavailable', {
  runtime: 'sandbox', reason: { code: 'execution_end_unknown' }, retryAfterSeconds: 5,
});

/** The sandbox has no room for another process. */
const noProcess = new Failure('runtime_unavailable', {
  runtime: 'sandbox', reason: { code: 'process_limit_reached' }, retryAfterSeconds: 5,
});

/** The exit code of a shell that has no room for a process. Its message may have gone nowhere. */
const noProcessCode = 2;

/** Returns whether a shell or another program reports that it has no room for a process. */
export function isForkError(errors: string): boolean {
  return /cannot fork$|can't fork|Resource temporarily unavailable$/im.test(errors);
}

/** Runs work in the sandbox with a time limit. The sandbox may never answer, since it can replace the files and the programs. */
export function withScriptTimeLimit<T>(signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const timedOut = (): Failure => new Failure('runtime_timeout', { runtime: 'sandbox', limitMs });
  return withTimeout(startTimeout(realTimers, limitMs, timedOut, [signal]), work);
}

/** Returns whether the sandbox has no working shell (126, 127), or no room for a process (2). No script ends with these codes itself. */
export function isShellFailure(code: number | null): boolean {
  return code === noProcessCode || code === 126 || code === 127;
}

/** Returns the failure of a script that ended with this code and without a result. */
export function scriptFailure(code: number | null): Failure {
  return code === noProcessCode ? noProcess : noScriptResult;
}

/** Runs a script to its end. `isShort`, and a code that is null: see `ExecutionHost.run`. Rejects if the signal fires first. */
export async function runScript(
  host: Pick<ExecutionHost, 'run'>, sandboxId: string, command: readonly string[], signal: AbortSignal, isShort = true,
): Promise<{ readonly output: string; readonly code: number | null }> {
  const execution = await host.run(sandboxId, command, signal, { isShort });
  const result = await killOnFailure(execution, async () => {
    const [out, err] = [execution.stdout, execution.stderr].map((stream) => readText(stream, () => noScriptResult));
    const [output = '', code] = await raceSignal(Promise.all([out, execution.exited, err]), signal);
    return { output, code };
  });
  // Without room for a process, a shell in the sandbox can't start the script. The engine can, if the script is not short.
  return isShort && isShellFailure(result.code) ? runScript(host, sandboxId, command, signal, false) : result;
}

/** If the work fails, kills the execution. Does not wait for that, since the sandbox could delay it. */
export async function killOnFailure<T>(execution: Execution, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    execution.kill().catch(() => {});
    throw error;
  }
}

/** Returns the output of a program in the sandbox as text. Throws the error of `tooLong` if it is longer than any expected output. */
export async function readText(stream: ReadableStream<Uint8Array>, tooLong: () => Failure): Promise<string> {
  return String(await readAtMost(maxBytes, stream, tooLong));
}

/**
 * Returns the first line of a Skep script's output, and the stream after it. The line is null if the output ends before it is complete.
 * Throws `noProcess` if the script could not go on to its first line because of that.
 */
export function readFirstLine(execution: Execution, signal: AbortSignal): ReturnType<typeof takeFirstLine> {
  return killOnFailure(execution, () => withScriptTimeLimit(signal, async () => {
    const first = await takeFirstLine(execution.stdout);
    if (first.line === null && (await execution.exited) === noProcessCode) throw noProcess;
    return first;
  }));
}

async function takeFirstLine(
  stream: ReadableStream<Uint8Array>,
): Promise<{ line: string | null; rest: ReadableStream<Uint8Array> }> {
  const reader = stream.getReader();
  let bytes: Buffer = Buffer.alloc(0);
  let end = -1;
  for (let next = await reader.read(); next.value !== undefined; next = await reader.read()) {
    bytes = Buffer.concat([bytes, next.value]);
    end = bytes.indexOf('\n');
    if (end >= 0) break;
    if (bytes.length > maxBytes) throw noScriptResult;
  }
  reader.releaseLock();
  const left = bytes.subarray(end + 1);
  async function* rest(): AsyncGenerator<Uint8Array> {
    if (left.length > 0) yield left;
    yield* stream;
  }
  return { line: end < 0 ? null : bytes.toString('utf8', 0, end), rest: ReadableStream.from(rest()) };
}
