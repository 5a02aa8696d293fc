import { Failure } from '../../../src/domain/failure.ts';
import type { SandboxExecutions } from '../../../src/ports/sandbox-executions.ts';
import { streamOf } from '../../../src/adapters/sandbox-runtime/kept-bytes.ts';
import { sandboxPath } from '../../../src/adapters/sandbox-runtime/sandbox-path.ts';
import { signalNumber } from '../../../src/adapters/sandbox-runtime/signal-numbers.ts';
import { raceSignal } from '../../../src/adapters/shared/timeout.ts';
import type { MemoryEngine } from './sandbox-engine.ts';

/** They are on the engine, and so outlive the runtimes that are made over it. A terminal is a command whose outputs are one. */
export function memoryExecutions(engine: MemoryEngine): SandboxExecutions {
  return {
    async start(sandboxId, request, signal) {
      await Promise.resolve();
      signal.throwIfAborted();
      const workingDir = request.workingDir === undefined ? {} : { workingDir: sandboxPath(request.workingDir, 'workingDir') };
      return engine.startExecution(sandboxId, { ...request, ...workingDir }).state;
    },
    state: async (sandboxId, executionId) => engine.execution(sandboxId, executionId).state,
    ended: async (sandboxId, executionId, signal) => raceSignal(engine.execution(sandboxId, executionId).ended, signal),
    async output(sandboxId, executionId, { stream, after, follow }, signal) {
      signal.throwIfAborted();
      const execution = engine.execution(sandboxId, executionId);
      return streamOf(signal, (cancelled) => execution.read(stream, after, follow, cancelled));
    },
    async write(sandboxId, executionId, content, close, signal) {
      const execution = engine.execution(sandboxId, executionId);
      engine.demandRunning(sandboxId);
      await execution.write(content, close, signal);
    },
    async signal(sandboxId, executionId, signalName) {
      const number = signalNumber(signalName);
      engine.execution(sandboxId, executionId);
      engine.demandRunning(sandboxId);
      engine.signalExecution(sandboxId, executionId, signalName, number);
    },
    async resize(sandboxId, executionId) {
      engine.execution(sandboxId, executionId);
    },
    async remove(sandboxId, executionId) {
      await engine.removeExecution(sandboxId, executionId);
    },
  };
}

/** The signals that end no command. */
export const harmlessSignals: ReadonlySet<string> = new Set(['SIGCHLD', 'SIGCONT', 'SIGSTOP', 'SIGTSTP', 'SIGTTIN', 'SIGTTOU', 'SIGURG', 'SIGWINCH']);

export function executionNotFound(id: string): Failure {
  return new Failure('execution_not_found', { id });
}
