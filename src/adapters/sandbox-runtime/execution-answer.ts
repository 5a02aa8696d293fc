import { Failure } from '../../domain/failure.ts';
import type { Execution } from '../../ports/sandbox-runtime.ts';
import { raceSignal, realTimers, startTimeout, withTimeout } from '../shared/timeout.ts';
import type { ExecutionHost } from './execution-host.ts';

/** Longer than a script takes that waits for nothing. */
const limitMs = 20_000;
/** More than any script has to say. */
const maxBytes = 64 << 10;

/** What a script of Skep's own says. The code is null if the sandbox was stopped meanwhile. */
export interface Answer {
  readonly said: string;
  readonly code: number | null;
}

export const unanswered = new Failure('runtime_unavailable', {
  runtime: 'sandbox', reason: { code: 'execution_end_unknown' }, retryAfterSeconds: 5,
});

/** Does work for which the sandbox is needed, which may never answer: it can replace what is read there, and what that is read with. */
export function limited<T>(signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const timedOut = (): Failure => new Failure('runtime_timeout', { runtime: 'sandbox', limitMs });
  return withTimeout(startTimeout(realTimers, limitMs, timedOut, [signal]), work);
}

/** Runs a script to its end, which is not waited for longer than until the signal fires. */
export async function answerOf(
  host: Pick<ExecutionHost, 'run'>, sandboxId: string, command: readonly string[], signal: AbortSignal,
): Promise<Answer> {
  const execution = await host.run(sandboxId, command, signal);
  return untilFailure(execution, () => raceSignal(Promise.all([textOf(execution.stdout, () => unanswered), execution.exited]), signal))
    .then(([said, code]) => ({ said, code }));
}

/** Ends the execution if the work with it fails. Nobody waits for that, since the sandbox takes part in it. */
export async function untilFailure<T>(execution: Execution, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    execution.kill().catch(() => {});
    throw error;
  }
}

/** Returns a text of a program in the sandbox. Throws what `tooLong` returns if it is longer than any script or program has to say. */
export async function textOf(stream: ReadableStream<Uint8Array>, tooLong: () => Failure): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of stream) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw tooLong();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

/** Returns the first line that a script of Skep's own writes, and what comes after it. Null if there is none. */
export function firstLineOf(execution: Execution, signal: AbortSignal): ReturnType<typeof takeFirstLine> {
  return untilFailure(execution, () => limited(signal, () => takeFirstLine(execution.stdout)));
}

async function takeFirstLine(
  stream: ReadableStream<Uint8Array>,
): Promise<{ line: string | null; rest: ReadableStream<Uint8Array> }> {
  const reader = stream.getReader();
  let begun: Buffer = Buffer.alloc(0);
  let end = -1;
  for (let next = await reader.read(); next.value !== undefined; next = await reader.read()) {
    begun = Buffer.concat([begun, next.value]);
    end = begun.indexOf('\n');
    if (end >= 0) break;
    if (begun.length > maxBytes) throw unanswered;
  }
  reader.releaseLock();
  const left = begun.subarray(end + 1);
  async function* rest(): AsyncGenerator<Uint8Array> {
    if (left.length > 0) yield left;
    yield* stream;
  }
  // What is read in full without another stream on the way is read faster.
  return { line: end < 0 ? null : begun.toString('utf8', 0, end), rest: left.length === 0 ? stream : ReadableStream.from(rest()) };
}
