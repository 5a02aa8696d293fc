import assert from 'node:assert/strict';
import { type ExecutionsCase, type ExecutionsStage } from './sandbox-executions-harness.ts';
import { isFailing } from './sandbox-runtime-beats.ts';

/** Runs a script in the sandbox, in the folder of an execution. */
async function tamper({ start, folder, sandboxId }: ExecutionsStage, id: string, script: string): Promise<void> {
  const { state, ended, rest } = await start('speaks', { command: ['sh', '-c', `cd ${folder?.(sandboxId)}/${id} && ${script}`] });
  assert.equal((await ended()).exitCode, 0, `${JSON.stringify(await state())} ${await rest(0, 'stderr')}`);
}

const first = '00000000000000000000';
const files = ['kept/begun', 'kept/exit', `kept/out.${first}`, `kept/err.${first}`, 'pids', 'alive', 'in', 'leader', 'tty'];

/** What a sandbox can do to what is kept in it. */
export const tamperedCases: readonly ExecutionsCase[] = [
  [
    'answers when a sandbox has put FIFOs in the place of files',
    async (stage) => {
      const { start, open, folder } = stage;
      if (folder === undefined) return;
      const execution = await start('copies', { stdin: true });
      await execution.write('ready');
      await execution.some(5);
      await tamper(stage, execution.id, `rm -f ${files.join(' ')} && mkfifo ${files.join(' ')}`);
      const other = execution.by(await open());
      assert.equal((await other.state()).reason?.code, 'execution_end_unknown');
      assert.equal(await other.rest(), '');
      await other.resize(80, 24);
      await other.signal('SIGTERM');
      await other.remove();
      await assert.rejects(other.state(), isFailing('execution_not_found'));
    },
  ],
];
