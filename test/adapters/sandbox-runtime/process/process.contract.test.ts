import { describe, test } from 'vitest';
import { sandboxRuntimeContract } from '../../../contracts/sandbox-runtime.ts';
import type { SandboxRuntimeHarness } from '../../../contracts/sandbox-runtime-harness.ts';
import { shellCommands } from '../../../contracts/sandbox-runtime-commands.ts';
import { createHost } from './host.ts';
import { launchOf, programs } from './programs.ts';

async function createHarness(processTable: 'proc' | 'ps'): Promise<SandboxRuntimeHarness> {
  const host = await createHost({ processTable });
  return {
    ...host,
    traits: {
      missingCommand: 'stopped',
      exitCode: 'told',
      ports: 'served',
      outsideKill: 'wakes',
      outsideKillAfterReopening: 'wakes',
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

// The second way of finding processes is for systems without /proc; it works here too, if more slowly.
for (const kind of ['proc', 'ps'] as const) {
  describe(`process keeps the contract of sandbox runtimes, with ${kind}`, () => {
    for (const contractCase of sandboxRuntimeContract(() => createHarness(kind))) test(contractCase.name, () => contractCase.run());
  });
}
