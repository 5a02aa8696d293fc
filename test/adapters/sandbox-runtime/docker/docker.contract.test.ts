import { afterAll, test } from 'vitest';
import type { SandboxLaunch } from '../../../../src/ports/sandbox-runtime.ts';
import { shellCommands } from '../../../contracts/sandbox-runtime-commands.ts';
import { sandboxRuntimeContract } from '../../../contracts/sandbox-runtime.ts';
import { eventually, type SandboxRuntimeHarness, type SandboxRuntimeTraits } from '../../../contracts/sandbox-runtime-harness.ts';
import { describeWithDocker } from '../../../support/docker.ts';
import { createEngine, type Engine } from './engine.ts';
import { launchOf, programs } from './programs.ts';

const traits: SandboxRuntimeTraits = {
  freeze: true,
  ignores: [],
  missingCommand: 'stopped',
  exitCode: 'known',
  ports: 'served',
  endFromOutside: 'reported',
  outsideKill: 'notified',
  outsideKillAfterReopening: 'notified',
  killWhileFrozen: 'on resume',
  logs: 'UTF-8',
};

function harnessOf(engine: Engine): SandboxRuntimeHarness {
  return {
    open: async () => engine.open(),
    commands: shellCommands,
    launch: (program) => launchOf(programs[program]),
    readFile: (id, name) => engine.readFile(id, `/workspace/${name}`),
    // Through the engine, since what is frozen does not feel a signal from elsewhere.
    crash: async (id) => void (await engine.container(id).kill()),
    endFromOutside: async (id) => void (await engine.container(id).stop({ t: 0 })),
    leftovers: engine.leftovers,
    close: engine.clear,
  };
}

describeWithDocker('Sandbox runtime contract: Docker', () => {
  const engine = createEngine();
  // Has its own deployment, because other cases list all sandboxes.
  const sharing = createEngine();
  afterAll(() => Promise.all([engine.close(), sharing.close()]));

  const share = sharing.share(() => launchOf(programs.counts));
  const shared = async (): Promise<SandboxLaunch> => {
    const launch = await share();
    await eventually('the program runs', async () => (await sharing.readFile(launch.id, '/workspace/count')) !== null);
    await sharing.ask(launch.id, 'find /workspace -mindepth 1 -maxdepth 1 ! -name runs ! -name "count*" -exec rm -rf {} +');
    return launch;
  };
  const contract = sandboxRuntimeContract(async () => harnessOf(engine), traits, async () => ({ ...harnessOf(sharing), shared }));
  for (const { name, run } of contract) test(name, run);
});
