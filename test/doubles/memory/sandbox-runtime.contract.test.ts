import { describe, expect, test } from 'vitest';
import { Failure } from '../../../src/domain/failure.ts';
import { createMemoryRuntime, MemoryEngine, type MemorySandbox } from './index.ts';
import type { SandboxRuntime } from '../../../src/ports/sandbox-runtime.ts';
import { processCases, sandboxRuntimeContract } from '../../contracts/sandbox-runtime.ts';
import { everyByte } from '../../contracts/sandbox-runtime-logs.ts';
import { stageCases, type SandboxRuntimeHarness } from '../../contracts/sandbox-runtime-harness.ts';
import { launchOf } from '../../adapters/sandbox-runtime/process/programs.ts';
import { commands, runCommand } from './commands.ts';

/** Runs the program that the command's only word names, as the programs of the contract do. */
function runProgram({ launch, files, isFrozen, write, end }: MemorySandbox): (() => void) | void {
  const { sessionApiKey, spec, secrets } = launch;
  const program = spec.command?.[0];
  if (program === 'missing') return end({ code: 'command_not_found', command: program });
  files.set('runs', `${files.get('runs') ?? ''}run\n`);
  if (program === 'exits') write('gone\n');
  if (program === 'exits') return end({ code: 'process_exited', exitCode: 3, signal: null, program: null });
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

async function createHarness({ canFreeze = true, refusesFreeze = (): boolean => false } = {}): Promise<SandboxRuntimeHarness> {
  const engine = new MemoryEngine(runProgram, runCommand);
  engine.canFreeze = canFreeze;
  const opened: SandboxRuntime[] = [];
  return {
    traits: {
      missingCommand: 'stopped',
      exitCode: 'known',
      ports: 'simulated',
      outsideKill: 'notified',
      outsideKillAfterReopening: 'notified',
      killWhileFrozen: 'at once',
      logs: 'bytes',
    },
    async open() {
      const runtime = createMemoryRuntime(engine);
      const freeze = runtime.freeze.bind(runtime);
      runtime.freeze = async (id) => {
        if (refusesFreeze()) throw new Failure('runtime_unavailable', { runtime: 'memory', reason: { code: 'freeze_refused' }, retryAfterSeconds: 1 });
        return await freeze(id);
      };
      opened.push(runtime);
      return runtime;
    },
    commands,
    launch: (program) => launchOf([program]),
    readFile: async (id, name) => engine.readFile(id, name),
    crash: async (id) => engine.crash(id),
    leftovers: async (id) => engine.list().flatMap((observed) => (observed.id === id ? [observed.state] : [])),
    async close() {
      for (const { id } of engine.list()) engine.remove(id);
      for (const runtime of opened) await runtime.close();
    },
  };
}

describe('Sandbox runtime contract: in memory', () => {
  for (const contractCase of sandboxRuntimeContract(() => createHarness())) test(contractCase.name, () => contractCase.run());
});

describe('Sandbox runtime contract: in memory, unable to freeze', () => {
  for (const { name, run } of stageCases(() => createHarness({ canFreeze: false }), processCases)) test(name, run);
});

describe('Sandbox runtime contract: in memory, refusing every second freeze', () => {
  let freezes = 0;
  const refusesFreeze = (): boolean => (freezes += 1) % 2 === 1;
  for (const { name, run } of stageCases(() => createHarness({ refusesFreeze }), processCases)) test(name, run);
});

test('the sandbox runtime contract fails for a runtime that refuses every freeze', async () => {
  const cases = sandboxRuntimeContract(() => createHarness({ refusesFreeze: () => true }));
  const found = cases.find(({ name }) => name.startsWith('freeze holds all processes'));
  await expect(found?.run()).rejects.toMatchObject({ context: { reason: { code: 'freeze_refused' } } });
});
