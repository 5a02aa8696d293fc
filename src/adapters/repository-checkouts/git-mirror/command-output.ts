import type { Execution } from '../../../ports/sandbox-runtime.ts';
import { raceSignal, type Timeout } from '../../shared/timeout.ts';
import { refusalOf } from './snapshot-script.ts';

/**
 * Reads the output of a command in a sandbox. Kills the command, without waiting for its end, if the read fails or the command then runs
 * longer than the limit.
 */
export async function readCommand<T>(
  execution: Execution, signal: AbortSignal, startLimit: () => Timeout, read: (output: CommandOutput) => Promise<T>,
): Promise<T> {
  const kill = (): void => void execution.kill().catch(() => {});
  try {
    const result = await read(new CommandOutput(execution, signal));
    const limit = startLimit();
    void raceSignal(execution.exited, limit.signal).catch(kill).finally(() => limit.end());
    return result;
  } catch (error) {
    kill();
    throw error;
  }
}

const maxStderrBytes = 4096;

export class CommandOutput {
  readonly #execution: Execution;
  readonly #signal: AbortSignal;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #stderrRead: Promise<unknown>;
  #stderr = '';

  constructor(execution: Execution, signal: AbortSignal) {
    this.#execution = execution;
    this.#signal = signal;
    this.#reader = execution.stdout.getReader();
    this.#stderrRead = this.#readStderr().catch(() => 'the exit code says how it ended');
    execution.stdin.close().catch(() => 'it reads nothing');
  }

  /** Returns null at the end. */
  async read(): Promise<Uint8Array | null> {
    return (await raceSignal(this.#reader.read(), this.#signal)).value ?? null;
  }

  /** Stops reading. Further output of the command is dropped. */
  cancel(): void {
    this.#reader.cancel().catch(() => {});
  }

  /** Waits until the command has ended. Throws a refusal if it failed. */
  async requireSuccess(): Promise<void> {
    const exitCode = await raceSignal(this.#execution.exited, this.#signal);
    await raceSignal(this.#stderrRead, this.#signal);
    const refusal = refusalOf(exitCode, this.#stderr.slice(0, maxStderrBytes));
    if (refusal !== null) throw refusal;
  }

  async #readStderr(): Promise<void> {
    const decoder = new TextDecoder();
    for await (const chunk of this.#execution.stderr) {
      if (this.#stderr.length < maxStderrBytes) this.#stderr += decoder.decode(chunk, { stream: true });
    }
  }
}
