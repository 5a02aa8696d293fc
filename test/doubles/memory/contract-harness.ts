import type { SandboxRuntime } from '../../../src/ports/sandbox-runtime.ts';
import { launchOf } from '../../adapters/sandbox-runtime/process/programs.ts';
import type { SandboxExecutionsHarness, SandboxExecutionsTraits } from '../../contracts/sandbox-executions-harness.ts';
import type { SandboxRuntimeHarness, SandboxRuntimeTraits } from '../../contracts/sandbox-runtime-harness.ts';
import { everyByte } from '../../contracts/sandbox-runtime-logs.ts';
import { commands, runCommand } from './commands.ts';
import { executionCommands, runExecution } from './execution-commands.ts';
import { createMemoryRuntime, MemoryEngine, type MemoryProgram, type MemorySandbox } from './index.ts';

/** Changes a runtime for a test of the contract. */
export type RuntimeChange = (runtime: SandboxRuntime, engine: MemoryEngine) => SandboxRuntime;

export const runtimeTraits: SandboxRuntimeTraits = {
  freeze: true,
  ignores: ['image', 'resources', 'isolation', 'labels', 'runtimeOptions'],
  missingCommand: 'stopped',
  exitCode: 'known',
  ports: 'simulated',
  endFromOutside: 'reported',
  outsideKill: 'notified',
  outsideKillAfterReopening: 'notified',
  killWhileFrozen: 'at once',
  logs: 'bytes',
};

export const executionsTraits: SandboxExecutionsTraits = { freeze: true, durable: true, terminals: 'simulated', folder: 'hidden' };

/** Runs the program that the command's only word names, as the programs of the contract do. */
function runProgram({ launch, files, isFrozen, write, end }: MemorySandbox): ReturnType<MemoryProgram> {
  const { sessionApiKey, spec, secrets } = launch;
  const program = spec.command?.[0];
  if (program === 'missing') return end({ code: 'command_not_found', command: program });
  files.set('runs', `${files.get('runs') ?? ''}run\n`);
  if (program === 'exits') write('gone\n');
  if (program === 'exits') return end({ code: 'process_exited', exitCode: 3, signal: null, program: null });
  if (program === 'ends itself') return end({ code: 'process_exited', exitCode: null, signal: 'SIGTERM', program: null });
  if (program === 'says goodbye') {
    return (wasAsked) => {
      if (wasAsked) files.set('goodbye', 'bye\n');
    };
  }
  if (program === 'tells') files.set('told', `${secrets?.['GREETING'] ?? spec.initialEnv['GREETING']}\n${sessionApiKey}\n`);
  if (program === 'says') write(Uint8Array.of(...everyByte, 10));
  let count = 0;
  const timer = setInterval(() => {
    if (isFrozen()) return;
    files.set('count', String((count += 1)));
    if (program === 'says') write(`line ${count}\n`);
  }, 1);
  return () => clearInterval(timer);
}

export async function createRuntimeHarness(change: RuntimeChange = (runtime) => runtime): Promise<SandboxRuntimeHarness> {
  const engine = new MemoryEngine(runProgram, runCommand);
  const opened: SandboxRuntime[] = [];
  return {
    async open() {
      const runtime = change(createMemoryRuntime(engine), engine);
      opened.push(runtime);
      return runtime;
    },
    commands,
    launch: (program) => launchOf([program]),
    readFile: async (id, name) => engine.readFile(id, name),
    crash: async (id) => engine.crash(id),
    endFromOutside: async (id) => engine.stopFromOutside(id),
    leftovers: async (id) => engine.list().flatMap((observed) => (observed.id === id ? [observed.state] : [])),
    async close() {
      for (const { id } of engine.list()) engine.remove(id);
      for (const runtime of opened) await runtime.close();
    },
  };
}

export async function createExecutionsHarness(change: RuntimeChange = (runtime) => runtime): Promise<SandboxExecutionsHarness> {
  const engine = new MemoryEngine(undefined, runExecution);
  return {
    open: async () => change(createMemoryRuntime(engine), engine),
    commands: executionCommands,
    launch: () => launchOf(['runs on']),
    readFile: async (id, name) => engine.readFile(id, name),
    async close() {
      for (const { id } of engine.list()) engine.remove(id);
    },
  };
}
