import { describe, test } from 'vitest';
import type { ProcessRuntimeOptions } from '../../../../src/adapters/sandbox-runtime/process/index.ts';
import { processCases, sandboxRuntimeContract } from '../../../contracts/sandbox-runtime.ts';
import { stageCases, type SandboxRuntimeHarness } from '../../../contracts/sandbox-runtime-harness.ts';
import { shellCommands } from '../../../contracts/sandbox-runtime-commands.ts';
import { createHost } from './host.ts';
import { launchOf, programs } from './programs.ts';

async function createHarness(options: Partial<ProcessRuntimeOptions>): Promise<SandboxRuntimeHarness> {
  const host = await createHost(options);
  return {
    ...host,
    traits: {
      missingCommand: 'stopped',
      exitCode: 'known',
      ports: 'served',
      outsideKill: 'notified',
      outsideKillAfterReopening: 'notified',
      killWhileFrozen: 'at once',
      logs: 'bytes',
    },
    open: async () => host.open(),
    commands: shellCommands,
    launch: (program) => launchOf(programs[program]),
    async crash(id) {
      process.kill(-(await host.leader(id)), 'SIGKILL');
    },
  };
}

describe('Sandbox runtime contract: process', () => {
  for (const { name, run } of sandboxRuntimeContract(() => createHarness({ processTable: 'proc' }))) test(name, run);
});

// For systems without /proc. Each look at the processes starts a program, so it looks less often.
describe('Sandbox runtime contract: process, with ps instead of /proc', () => {
  for (const { name, run } of stageCases(() => createHarness({ processTable: 'ps', pollMs: 250 }), processCases)) test(name, run);
});
