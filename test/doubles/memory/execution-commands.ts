import type { ExecutionCommand, SandboxExecutionsHarness } from '../../contracts/sandbox-executions-harness.ts';
import { floodBytes, numberedLines } from '../../contracts/sandbox-executions-harness.ts';
import type { MemoryCommand } from './index.ts';
import { noCommand } from './sandbox-execution.ts';

const words: readonly ExecutionCommand[] = [
  'copies', 'speaks', 'numbers', 'floods', 'sleeps', 'beats', 'shows its terminal', 'tells', 'missing', 'ends itself',
];

/** The commands of the contract of executions. Each has only its name and no arguments. */
export const executionCommands = Object.fromEntries(words.map((word) => [word, [word]])) as unknown as SandboxExecutionsHarness['commands'];

/** Runs the command. */
export const runExecution: MemoryCommand = async (execution) => {
  const { request, env, workingDir, stdin, stdout, stderr, files, step, signal } = execution;
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
    case 'tells':
      await write(stdout, `${env['EXTRA']}\n`);
      files.set(`${workingDir}/where`, 'here\n');
      return 0;
    case 'ends itself':
      return 128 + 15;
    case undefined:
    default:
      return noCommand(execution);
  }
};
