import { describe, test } from 'vitest';
import type { ProcessRuntimeOptions } from '../../../../src/adapters/sandbox-runtime/process/index.ts';
import { processCases, sandboxRuntimeContract } from '../../../contracts/sandbox-runtime.ts';
import { stageCases, type SandboxRuntimeHarness, type SandboxRuntimeTraits } from '../../../contracts/sandbox-runtime-harness.ts';
import { shellCommands } from '../../../contracts/sandbox-runtime-commands.ts';
import { createHost } from './host.ts';
import { launchOf, programs } from './programs.ts';

const traits: SandboxRuntimeTraits = {
  freeze: true,
  ignores: ['image', 'resources', 'isolation', 'labels', 'runtimeOptions'],
  missingCommand: 'stopped',
  exitCode: 'known',
  ports: 'served',
  endFromOutside: 'reported',
  outsideKill: 'notified',
  outsideKillAfterReopening: 'notified',
  killWhileFrozen: 'at once',
  logs: 'bytes',
};

async function createHarness(options: Partial<ProcessRuntimeOptions>): Promise<SandboxRuntimeHarness> {
  const host = await createHost(options);
  return {
    ...host,
    open: async () => host.open(),
    commands: shellCommands,
    launch: (program) => launchOf(programs[program]),
    async crash(id) {
      process.kill(-(await host.leader(id)), 'SIGKILL');
    },
    endFromOutside: host.endAsByRestart,
  };
}

describe('Sandbox runtime contract: process', () => {
  for (const { name, run } of sandboxRuntimeContract(() => createHarness({ processTable: 'proc' }), traits)) test(name, run);
});

// For systems without /proc. Each look at the processes starts a program, so it looks less often.
describe('Sandbox runtime contract: process, with ps instead of /proc', () => {
  const cases = stageCases(() => createHarness({ processTable: 'ps', pollMs: 250 }), traits, processCases);
  for (const { name, run } of cases) test(name, run);
});
