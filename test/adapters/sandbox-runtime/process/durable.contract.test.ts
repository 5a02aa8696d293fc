import { join } from 'node:path';
import { describe, test } from 'vitest';
import { executionCommands, type SandboxExecutionsHarness, type SandboxExecutionsTraits } from '../../../contracts/sandbox-executions-harness.ts';
import { sandboxExecutionsContract } from '../../../contracts/sandbox-executions.ts';
import { shell } from '../../../support/sandbox-programs.ts';
import { createHost } from './host.ts';
import { launchOf } from './programs.ts';

const traits: SandboxExecutionsTraits = { freeze: true, durable: true, terminals: 'durable', folder: 'visible' };

async function createHarness(): Promise<SandboxExecutionsHarness> {
  const host = await createHost();
  return {
    ...host,
    open: async () => host.open(),
    launch: () => launchOf(shell('exec sleep 100000')),
    commands: executionCommands,
    folder: (id) => join(host.root, id, 'executions'),
  };
}

describe('Executions contract: process', () => {
  for (const { name, run } of sandboxExecutionsContract(createHarness, traits)) test(name, run);
});
