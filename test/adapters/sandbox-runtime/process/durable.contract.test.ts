import { join } from 'node:path';
import { describe, test } from 'vitest';
import { executionCommands, type SandboxExecutionsHarness } from '../../../contracts/sandbox-executions-harness.ts';
import { sandboxExecutionsContract } from '../../../contracts/sandbox-executions.ts';
import { shell } from '../../../support/sandbox-programs.ts';
import { createHost } from './host.ts';
import { launchOf } from './programs.ts';

async function createHarness(): Promise<SandboxExecutionsHarness> {
  const host = await createHost();
  return {
    ...host,
    traits: { durable: true, terminals: 'durable' },
    open: async () => host.open(),
    launch: () => launchOf(shell('exec sleep 100000')),
    commands: executionCommands,
    folder: (id) => join(host.root, id, 'executions'),
  };
}

describe('Executions contract: process', () => {
  for (const contractCase of sandboxExecutionsContract(createHarness)) test(contractCase.name, () => contractCase.run());
});
