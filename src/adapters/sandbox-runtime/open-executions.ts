import type { ExecutionState, OpenExecution, OpenExecutionStart, OutputStream } from '../../ports/sandbox-executions.ts';
import { readFirstLine, noScriptResult } from './script-result.ts';
import { type ExecutionHost, executionNotFound } from './execution-host.ts';
import type { ExecutionReader } from './execution-reader.ts';
import { scripts } from './execution-scripts.ts';
import { environmentLines, supervisorCommand } from './execution-supervisor.ts';
import { streamOf } from './output-buffer.ts';

/** The exit code of the script `feed` if the command accepts no more input. */
const inputClosedCode = 5;

/** Starts a command under a supervisor and connects to its streams. Removes an earlier execution with the same id. */
export async function openExecution(
  host: ExecutionHost, reader: ExecutionReader, sandboxId: string, { env = {}, ...given }: OpenExecutionStart, signal: AbortSignal,
): Promise<OpenExecution> {
  const { executionId } = given;
  const { lines, rest } = environmentLines(env);
  const start = { ...given, env: rest, stdin: true, tty: null };
  const execution = await host.launch(sandboxId, start, (place) => supervisorCommand(start, place, true), signal);
  const input = execution.stdin.getWriter();
  // If the command can't run, the write fails. That is no error here.
  void input.write(Buffer.from(lines)).catch(() => {});
  input.releaseLock();
  const { line, rest: stdout } = await readFirstLine(execution, signal);
  if (line === 'exists') {
    await host.remove(sandboxId, executionId);
    return openExecution(host, reader, sandboxId, { env, ...given }, signal);
  }
  const durable = line === 'durable';
  if (durable) execution.outlive();
  const { stdin, stderr, exited, workingDir } = execution;
  return {
    stdin, stdout, stderr, exited, durable,
    ...(workingDir !== undefined && { workingDir }),
    kill: () => (durable ? host.remove(sandboxId, executionId) : execution.kill()),
    handedOver: { bytes: 0, isCut: false },
    forgetBefore: ({ stdin: input, stdout: output }) => reader.runToEnd(sandboxId, executionId, scripts.forget(input, output)),
    // Does nothing: closing the runtime leaves the execution.
    leave: () => {},
  };
}

/** Takes over a command that another process opened. `ended` waits for its end. */
export async function reopenExecution(
  host: ExecutionHost, reader: ExecutionReader, ended: (signal: AbortSignal) => Promise<ExecutionState>,
  sandboxId: string, executionId: string, after: number, signal: AbortSignal,
): Promise<OpenExecution> {
  const { status, stderr: errors } = await reader.readState(sandboxId, executionId, false, signal);
  if (status === 'lost') throw executionNotFound(executionId);
  const feeder = await reader.start(sandboxId, executionId, scripts.feed(), signal);
  // The feeder ends when its input ends. If it were killed, its count of passed bytes would be wrong.
  feeder.outlive();
  const { line } = await readFirstLine(feeder, signal);
  if (line === null && (await feeder.exited) !== inputClosedCode) throw noScriptResult;
  const [bytes, isCut] = line?.split(' ') ?? [];
  const over = new AbortController();
  const output = (stream: OutputStream, from: number): ReadableStream<Uint8Array> =>
    streamOf(over.signal, (cancelled) => reader.read(sandboxId, executionId, { stream, after: from, follow: true }, cancelled));
  return {
    stdin: feeder.stdin,
    stdout: output('stdout', after),
    stderr: output('stderr', errors.oldest),
    exited: ended(over.signal).then(({ exitCode }) => exitCode, () => null),
    durable: true,
    async kill() {
      over.abort(new Error('the command is ended'));
      await host.remove(sandboxId, executionId);
    },
    // An ended command accepts no more input.
    handedOver: { bytes: bytes === undefined ? Infinity : Number(bytes), isCut: isCut === 'cut' },
    forgetBefore: ({ stdin, stdout }) => reader.runToEnd(sandboxId, executionId, scripts.forget(stdin, stdout)),
    leave: () => over.abort(new Error('the command is left to another process')),
  };
}
