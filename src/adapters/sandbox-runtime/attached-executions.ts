import { Failure } from '../../domain/failure.ts';
import type { ExecutionStart, ExecutionState, OutputRequest, SandboxExecutions } from '../../ports/sandbox-executions.ts';
import type { SandboxRuntime } from '../../ports/sandbox-runtime.ts';
import { raceSignal } from '../shared/timeout.ts';
import { AttachedExecution } from './attached-execution.ts';
import { streamOf } from './kept-bytes.ts';

type Runtime = Pick<SandboxRuntime, 'execute' | 'inspect'>;

/** Executions that end with this process, without terminals. A signal of any name ends the command. */
export class AttachedExecutions implements SandboxExecutions {
  readonly #runtime: Runtime;
  readonly #own = new Map<string, AttachedExecution>();

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  async start(sandboxId: string, start: ExecutionStart, signal: AbortSignal): Promise<ExecutionState> {
    const key = `${sandboxId}/${start.executionId}`;
    const earlier = this.#own.get(key);
    if (earlier !== undefined) return earlier.state;
    if (start.tty !== null) {
      throw new Failure('invalid_request', { problems: [{ argument: 'tty', reason: { code: 'terminal_unsupported' } }] });
    }
    const execution = new AttachedExecution(start, await this.#runtime.execute(sandboxId, start, signal), { code: 'execution_attached' });
    this.#own.set(key, execution);
    return execution.state;
  }

  async state(sandboxId: string, executionId: string): Promise<ExecutionState> {
    return (await this.#find(sandboxId, executionId)).state;
  }

  async ended(sandboxId: string, executionId: string, signal: AbortSignal): Promise<ExecutionState> {
    return raceSignal((await this.#find(sandboxId, executionId)).ended, signal);
  }

  async output(
    sandboxId: string, executionId: string, request: OutputRequest, signal: AbortSignal,
  ): Promise<ReadableStream<Uint8Array>> {
    signal.throwIfAborted();
    const execution = await this.#find(sandboxId, executionId);
    return streamOf(signal, (cancelled) => execution.read(request.stream, request.after, request.follow, cancelled));
  }

  async write(
    sandboxId: string, executionId: string, content: ReadableStream<Uint8Array>, close: boolean, signal: AbortSignal,
  ): Promise<void> {
    const execution = await this.#find(sandboxId, executionId);
    const { state } = await this.#runtime.inspect(sandboxId);
    if (state !== 'running') throw new Failure('sandbox_not_running', { id: sandboxId, status: state });
    await execution.write(content, close, signal);
  }

  async signal(sandboxId: string, executionId: string): Promise<void> {
    await (await this.#find(sandboxId, executionId)).execution.kill();
  }

  async resize(sandboxId: string, executionId: string): Promise<void> {
    await this.#find(sandboxId, executionId);
  }

  async remove(sandboxId: string, executionId: string): Promise<void> {
    await this.#own.get(`${sandboxId}/${executionId}`)?.execution.kill();
    this.#own.delete(`${sandboxId}/${executionId}`);
  }

  async #find(sandboxId: string, executionId: string): Promise<AttachedExecution> {
    const found = this.#own.get(`${sandboxId}/${executionId}`);
    if (found !== undefined) return found;
    if ((await this.#runtime.inspect(sandboxId)).state === 'absent') throw new Failure('sandbox_not_found', { id: sandboxId });
    throw new Failure('execution_not_found', { id: executionId });
  }
}
