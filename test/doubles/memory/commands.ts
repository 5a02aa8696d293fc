import type { MemoryCommand, MemoryExecution } from './index.ts';
import type { SandboxCommand, SandboxCommands } from '../../contracts/sandbox-runtime-commands.ts';

/** The commands of the contract. Each has only its name and no arguments. */
export const commands: SandboxCommands = {
  copies: ['copies'],
  speaks: ['speaks'],
  alternates: ['alternates'],
  tells: ['tells'],
  floods: ['floods'],
  beats: ['beats'],
  'ends itself': ['ends itself'],
  adds: ['adds'],
  'names in bytes': ['names in bytes'],
  locates: ['locates'],
  'counts open files': ['counts open files'],
  'writes to the root': ['writes to the root'],
  missing: ['missing'],
};

type Say = (text: string) => Promise<void>;

const behaviours: Readonly<Record<SandboxCommand, (execution: MemoryExecution, out: Say, err: Say) => Promise<number>>> = {
  async copies({ stdin, stdout }) {
    await stdin.pipeTo(stdout);
    return 0;
  },
  async speaks(_execution, out, err) {
    await out('out\n');
    await err('err\n');
    return 7;
  },
  async alternates(_execution, out, err) {
    for (let number = 0; number < 500; number += 1) {
      await out(`out ${number}\n`);
      await err(`err ${number}\n`);
    }
    return 0;
  },
  async tells({ env, files, workingDir }, out) {
    files.set(`${workingDir}/where`, 'here\n');
    await out(`${env['GREETING']}\n${env['EXTRA'] ?? ''}\n`);
    return 0;
  },
  async floods({ stdout, files, workingDir }) {
    const writer = stdout.getWriter();
    for (let times = 0; times < 1024; times += 1) await writer.write(new Uint8Array(65_536));
    files.set(`${workingDir}/flooded`, 'over\n');
    return 0;
  },
  async beats({ files, step, signal }) {
    for (let beat = 1; !signal.aborted; beat += 1) {
      await step();
      files.set('beat', `${beat}\n`);
      await new Promise((resolve) => {
        setTimeout(resolve, 1);
      });
    }
    return 0;
  },
  'ends itself': async () => 128 + 15,
  async adds({ files }) {
    files.set('given/file', `${files.get('given/file')}more\n`);
    files.makeDirectory('/workspace/given/made');
    return 0;
  },
  // Its names are text.
  async 'names in bytes'({ files }) {
    files.set('given/bad\uFFFDutf', 'work');
    return 0;
  },
  async locates({ workingDir }, out) {
    await out(`${workingDir}\n`);
    return 0;
  },
  async 'counts open files'(_execution, out) {
    await out('1024\n');
    return 0;
  },
  'writes to the root': async () => 0,
  async missing(_execution, _out, err) {
    await err('command not found\n');
    return 127;
  },
};

function say(target: WritableStream<Uint8Array>): Say {
  return async (text) => {
    const writer = target.getWriter();
    await writer.write(new TextEncoder().encode(text));
    writer.releaseLock();
  };
}

/** Runs the command. */
export const runCommand: MemoryCommand = (execution) => {
  const behaviour = Object.entries(behaviours).find(([name]) => name === execution.request.command[0])?.[1] ?? behaviours.missing;
  return behaviour(execution, say(execution.stdout), say(execution.stderr));
};
