import { describe, test } from 'vitest';
import { createMemoryRuntime, type MemoryCommand, MemoryEngine } from './index.ts';
import { floodBytes, numberedLines, type ExecutionCommand, type SandboxExecutionsHarness } from '../../contracts/sandbox-executions-harness.ts';
import { sandboxExecutionsContract } from '../../contracts/sandbox-executions.ts';
import { launchOf } from '../../adapters/sandbox-runtime/process/programs.ts';
import { noCommand } from './sandbox-execution.ts';

const words: readonly ExecutionCommand[] = [
  'copies', 'speaks', 'numbers', 'floods', 'sleeps', 'beats', 'shows its terminal', 'missing', 'ends itself',
];
const commands = Object.fromEntries(words.map((word) => [word, [word]])) as unknown as SandboxExecutionsHarness['commands'];

/** Runs the command, which has only one word. */
const runCommand: MemoryCommand = async (execution) => {
  const { request, stdin, stdout, stderr, files, step, signal } = execution;
  const write = async (target: WritableStream<Uint8Array>, content: string | Uint8Array): Promise<void> => {
    await step();
    const writer = target.getWriter();
    await writer.write(Buffer.from(content));
    writer.releaseLock();
  };
  switch (request.command[0]) {
    case 'copies':
      await stdin.pipeTo(stdout);
      return 0;
    case 'speaks':
      await write(stdout, 'out\n');
      await write(stderr, 'err\n');
      return 7;
    case 'numbers':
      for (const line of numberedLines()) await write(stdout, line);
      return 0;
    case 'floods':
      for (let left = floodBytes; left > 0; left -= 65_536) await write(stdout, new Uint8Array(65_536));
      return 0;
    case 'sleeps':
    case 'beats':
      await write(stdout, 'ready\n');
      for (let beat = 1; !signal.aborted; beat += 1) {
        await step();
        if (request.command[0] === 'beats') files.set('beat', `${beat}\n`);
        await new Promise((resolve) => {
          setTimeout(resolve, 1);
        });
      }
      return 0;
    case 'ends itself':
      return 128 + 15;
    case undefined:
    default:
      return noCommand(execution);
  }
};

async function createHarness(): Promise<SandboxExecutionsHarness> {
  const engine = new MemoryEngine(undefined, runCommand);
  return {
    traits: { durable: true, terminals: 'simulated' },
    open: async () => createMemoryRuntime(engine),
    commands,
    launch: () => launchOf(['runs on']),
    readFile: async (id, name) => engine.readFile(id, name),
    async close() {
      for (const { id } of engine.list()) engine.remove(id);
    },
  };
}

describe('Executions contract: in memory', () => {
  for (const contractCase of sandboxExecutionsContract(createHarness)) test(contractCase.name, () => contractCase.run());
});
