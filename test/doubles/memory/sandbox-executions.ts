import { Failure } from '../../../src/domain/failure.ts';
import { raceSignal } from '../../../src/ports/abort-signals.ts';
import { neverAborts } from '../../../src/ports/abort-signals.ts';
import type { OpenExecution, OutputStream, SandboxExecutions, TerminalSize } from '../../../src/ports/sandbox-executions.ts';
import type { LocalExecution } from '../../../src/adapters/sandbox-runtime/local-execution.ts';
import { streamOf } from '../../../src/adapters/shared/node-streams.ts';
import { sandboxPath } from '../../../src/adapters/sandbox-runtime/sandbox-path.ts';
import { signalNumber } from '../../../src/adapters/sandbox-runtime/signal-numbers.ts';
import type { MemoryEngine } from './sandbox-engine.ts';

const handedOver = new WeakMap<LocalExecution, OpenExecution['handedOver']>();

/** The last size that each terminal was given by a resize. */
export const terminalSizes = new WeakMap<LocalExecution, TerminalSize>();

/** The executions belong to the engine, so they outlive the runtime objects. A terminal is a command with only one output. */
export function memoryExecutions(engine: MemoryEngine): SandboxExecutions {
  function opened(sandboxId: string, executionId: string, after: number): OpenExecution {
    const execution = engine.execution(sandboxId, executionId);
    const before = handedOver.get(execution) ?? { bytes: 0, isCut: false };
    const output = (stream: OutputStream, from: number) => streamOf(neverAborts, (cancelled) => execution[stream].read({ after: from, follow: true }, cancelled));
    return {
      stdin: new WritableStream<Uint8Array>({
        async write(chunk) {
          await execution.write(new Blob([Buffer.from(chunk)]).stream(), false, neverAborts);
          const bytes = (handedOver.get(execution)?.bytes ?? 0) + chunk.length;
          handedOver.set(execution, { bytes, isCut: chunk.at(-1) !== 0x0a });
        },
      }),
      stdout: output('stdout', after),
      stderr: output('stderr', 0),
      exited: execution.ended.then(({ exitCode }) => exitCode),
      kill: async () => engine.removeExecution(sandboxId, executionId),
      durable: true,
      handedOver: before,
      forgetBefore: async () => {},
      leave: () => {},
    };
  }

  return {
    async start(sandboxId, request, signal) {
      await Promise.resolve();
      signal.throwIfAborted();
      const workingDir = request.workingDir === undefined ? {} : { workingDir: sandboxPath(request.workingDir, 'workingDir') };
      return engine.startExecution(sandboxId, { ...request, ...workingDir }).state;
    },
    state: async (sandboxId, executionId) => engine.execution(sandboxId, executionId).state,
    ended: async (sandboxId, executionId, signal) => raceSignal(engine.execution(sandboxId, executionId).ended, signal),
    async output(sandboxId, executionId, { stream, ...request }, signal) {
      signal.throwIfAborted();
      const execution = engine.execution(sandboxId, executionId);
      return streamOf(signal, (cancelled) => execution[stream].read(request, cancelled));
    },
    async write(sandboxId, executionId, content, close, signal) {
      const execution = engine.execution(sandboxId, executionId);
      engine.requireRunning(sandboxId);
      await execution.write(content, close, signal);
    },
    async signal(sandboxId, executionId, signalName) {
      const number = signalNumber(signalName);
      engine.execution(sandboxId, executionId);
      engine.requireRunning(sandboxId);
      engine.signalExecution(sandboxId, executionId, signalName, number);
    },
    async resize(sandboxId, executionId, size) {
      terminalSizes.set(engine.execution(sandboxId, executionId), size);
    },
    async remove(sandboxId, executionId) {
      await engine.removeExecution(sandboxId, executionId);
    },
    async open(sandboxId, request, signal) {
      signal.throwIfAborted();
      engine.requireRunning(sandboxId);
      await engine.removeExecution(sandboxId, request.executionId);
      engine.startExecution(sandboxId, { ...request, stdin: true, tty: null });
      return opened(sandboxId, request.executionId, 0);
    },
    async reopen(sandboxId, executionId, after, signal) {
      signal.throwIfAborted();
      engine.requireRunning(sandboxId);
      return opened(sandboxId, executionId, after);
    },
  };
}

/** The signals that end no command. */
export const harmlessSignals: ReadonlySet<string> = new Set(['SIGCHLD', 'SIGCONT', 'SIGSTOP', 'SIGTSTP', 'SIGTTIN', 'SIGTTOU', 'SIGURG', 'SIGWINCH']);

export function executionNotFound(id: string): Failure {
  return new Failure('execution_not_found', { id });
}
