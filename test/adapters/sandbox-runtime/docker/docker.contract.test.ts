import { afterAll, test } from 'vitest';
import { shellCommands } from '../../../contracts/sandbox-runtime-commands.ts';
import { sandboxRuntimeContract } from '../../../contracts/sandbox-runtime.ts';
import type { SandboxRuntimeHarness } from '../../../contracts/sandbox-runtime-harness.ts';
import { describeWithDocker } from '../../../support/docker.ts';
import { createEngine } from './engine.ts';
import { launchOf, programs } from './programs.ts';

describeWithDocker('Sandbox runtime contract: Docker', () => {
  const engine = createEngine();
  afterAll(() => engine.close());

  const createHarness = async (): Promise<SandboxRuntimeHarness> => ({
    traits: {
      missingCommand: 'stopped',
      exitCode: 'known',
      ports: 'served',
      outsideKill: 'notified',
      outsideKillAfterReopening: 'notified',
      killWhileFrozen: 'on resume',
      logs: 'UTF-8',
    },
    open: async () => engine.open(),
    commands: shellCommands,
    launch: (program) => launchOf(programs[program]),
    readFile: (id, name) => engine.readFile(id, `/workspace/${name}`),
    // Through the engine, since what is frozen does not feel a signal from elsewhere.
    crash: async (id) => void (await engine.container(id).kill()),
    leftovers: engine.leftovers,
    close: engine.clear,
  });
  for (const contractCase of sandboxRuntimeContract(createHarness)) test(contractCase.name, () => contractCase.run());
});
