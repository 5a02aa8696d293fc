import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { isFailureOf } from '../../src/domain/failure.ts';
import { assertFailure, assertFails } from './contract.ts';
import { type ExecutionsCase, type ExecutionsStage, startBeating } from './sandbox-executions-harness.ts';
import { eventually, freeze } from './sandbox-runtime-harness.ts';

/** Runs a script in the folder of an execution in the sandbox. */
async function tamper({ start, folder, sandboxId }: ExecutionsStage, id: string, script: string): Promise<void> {
  const { state, ended, rest } = await start('speaks', { command: ['sh', '-c', `cd ${folder?.(sandboxId)}/${id} && ${script}`] });
  assert.equal((await ended()).exitCode, 0, `${JSON.stringify(await state())} ${await rest(0, 'stderr')}`);
}

/** Shortens long runs of one character. */
const runs = (text: string): string => text.replaceAll(/(.)\1{99,}/g, (run) => `${run[0]}*${run.length}`);

const first = '00000000000000000000';
const files = ['kept/begun', 'kept/exit', `kept/out.${first}`, `kept/err.${first}`, 'pids', 'alive', 'in', 'leader', 'tty'];

/** Attacks of a sandbox on the execution files in it. */
export const tamperedCases: readonly ExecutionsCase[] = [
  [
    'is found only once by a program that searches the arguments of all processes',
    async ({ start, traits }) => {
      const search = 'for file in /proc/[0-9]*/cmdline; do tr "\\0" " " <$file 2>/dev/null | grep -q "$0" && echo found; done; exit 0';
      const terminal = traits.terminals === 'durable' ? [{ stdin: true, tty: { cols: 80, rows: 24 } }] : [];
      for (const more of [{}, { stdin: true }, ...terminal]) {
        const word = randomBytes(6).toString('hex');
        const execution = await start('sleeps', { ...more, command: ['sh', '-c', 'echo ready; while :; do sleep 0.1; done', `word ${word}`] });
        await execution.some(1);
        // The pattern does not match itself.
        assert.equal(await (await start('speaks', { command: ['sh', '-c', search, `wor[d] ${word}`] })).rest(), 'found\n', JSON.stringify(more));
        await execution.remove();
      }
    },
  ],
  [
    "responds if the sandbox replaced the execution's files with FIFOs",
    async (stage) => {
      const { start, open } = stage;
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
      await assertFailure(other.state(), 'execution_not_found');
    },
  ],
  [
    "lets a command continue if its output can't be stored, and fails reads with output_dropped",
    async ({ start, runtime, open, folder, sandboxId }) => {
      const executionId = 'exec-full-out';
      const spoil = `cd ${folder?.(sandboxId)}/${executionId}/kept && rm -f out.dd && ln -sf /dev/full err.${first}`;
      const script = `read go; ${spoil}; echo one >&2; dd if=/dev/zero bs=65536 count=400 2>/dev/null || exit 8; echo two >&2; exit 7`;
      const execution = await start('copies', { executionId, stdin: true, command: ['sh', '-c', script] });
      await runtime.close();
      const other = execution.by(await open());
      await other.write('go\n');
      const { status, exitCode, stdout } = await other.ended();
      assert.deepEqual([status, exitCode], ['exited', 7]);
      const lost = (error: unknown): boolean => isFailureOf(error, 'output_dropped') && error.context.oldest === stdout.end;
      for (const after of [0, stdout.end]) await assertFails(other.rest(after), lost, `a read from ${after} on fails with output_dropped`);
      await assertFailure(other.rest(0, 'stderr'), 'output_dropped');
    },
  ],
  [
    "returns all of a command's stderr to its first reader, even if it can't be stored",
    async ({ start, folder, sandboxId }) => {
      const executionId = 'exec-full-err';
      const script = `ln -sf /dev/full ${folder?.(sandboxId)}/${executionId}/kept/err.${first}; echo one >&2; echo two >&2; exit 7`;
      const execution = await start('speaks', { executionId, command: ['sh', '-c', script] });
      assert.equal(await execution.rest(0, 'stderr'), 'one\ntwo\n');
      await execution.endsWith(7);
    },
  ],
  [
    'kills all processes of a command even if the sandbox has changed its list of processes',
    async (stage) => {
      const { start, open, readFile, sandboxId } = stage;
      const execution = await startBeating(stage);
      await tamper(stage, execution.id, 'echo 999999 1 > pids');
      const other = execution.by(await open());
      await other.signal('SIGKILL');
      await other.endsWith(137);
      const last = await readFile(sandboxId, 'beat');
      // This takes longer than many beats.
      await (await start('numbers')).ended();
      assert.equal(await readFile(sandboxId, 'beat'), last, 'a process of the killed command still writes heartbeats');
    },
  ],
  [
    "reads the state in a frozen sandbox that put a FIFO among the execution's files",
    async (stage) => {
      const { start, open, sandboxId } = stage;
      const execution = await start('sleeps');
      await execution.some(1);
      await tamper(stage, execution.id, 'mkfifo kept/pipe');
      const other = await open();
      await freeze(other, sandboxId);
      assert.equal((await execution.by(other).state()).status, 'running');
    },
    'own sandbox', 'if it freezes',
  ],
  [
    'erases the input and output that are forgotten, and each byte only once',
    async (stage) => {
      const { start, openCommand, folder, sandboxId } = stage;
      const { id, write, read, execution } = await openCommand('copies');
      const text = `0123456789${'x'.repeat(150_000)}`;
      await write(text);
      assert.equal(await read(text.length), text);
      const kept = async (): Promise<readonly string[]> => {
        const shown = `cd ${folder?.(sandboxId)}/${id}/kept && for f in in out.${first}; do tr '\\0' - <$f; echo; done`;
        return (await (await start('speaks', { command: ['sh', '-c', shown] })).rest()).split('\n').slice(0, 2).map(runs);
      };
      await eventually('all is kept', async () => (await kept()).every((content) => content === runs(text)));
      await execution.forgetBefore({ stdin: 4, stdout: 7 });
      const erased = (bytes: number): string => runs(`${'-'.repeat(bytes)}${text.slice(bytes)}`);
      assert.deepEqual(await kept(), [erased(4), erased(7)]);
      await tamper(stage, id, `for f in kept/in kept/out.${first}; do printf seen 1<>$f; done`);
      await execution.forgetBefore({ stdin: 140_000, stdout: text.length });
      assert.deepEqual(await kept(), [140_000, text.length].map((bytes) => runs(`seen${'-'.repeat(bytes - 4)}${text.slice(bytes)}`)));
    },
  ],
];
