import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { isFailureOf } from '../../src/domain/failure.ts';
import { neverAborts } from '../../src/ports/abort-signals.ts';
import { assertFailure, assertRejects, type ContractCase } from './contract.ts';
import {
  executionCases, checkNumbered, type ExecutionsCase, numberedBytes, type SandboxExecutionsHarness, type SandboxExecutionsTraits, startBeating,
} from './sandbox-executions-harness.ts';
import { slowReaderCases } from './sandbox-executions-slow-readers.ts';
import { survivalCases } from './sandbox-executions-survival.ts';
import { tamperedCases } from './sandbox-executions-tampered.ts';
import { terminalCases } from './sandbox-executions-terminals.ts';
import { eventually, freeze, waitFor } from './sandbox-runtime-harness.ts';

const falseIfNotRunning = (error: unknown): false => {
  if (!isFailureOf(error, 'sandbox_not_running')) throw error;
  return false;
};

/** What commands do while the process that started them runs. */
export const basicCases: readonly ExecutionsCase[] = [
  [
    "keeps a command's stdout, stderr and exit code after its end",
    async ({ start, traits }) => {
      const execution = await start('speaks');
      assert.equal(execution.begun.durable, traits.durable);
      const ended = await execution.ended();
      assert.equal(ended.status, 'exited');
      assert.equal(ended.exitCode, 7);
      assert.deepEqual([ended.stdout, ended.stderr], [{ oldest: 0, end: 4 }, { oldest: 0, end: 4 }]);
      assert.deepEqual(await execution.state(), ended);
      assert.deepEqual([await execution.rest(), await execution.rest(0, 'stderr')], ['out\n', 'err\n']);
      assert.deepEqual([await execution.rest(2), await execution.rest(4), await execution.rest(100)], ['t\n', '', '']);
    },
  ],
  [
    'starts a command only once per id',
    async ({ start, commands, runtime, sandboxId }) => {
      const { id } = await start('copies', { stdin: true });
      const again = { executionId: id, command: commands.speaks, stdin: true, tty: null };
      const state = await runtime.executions.start(sandboxId, again, neverAborts);
      assert.equal(state.status, 'running');
      const execution = await start('copies', { executionId: id, stdin: true });
      await execution.write('once', true);
      assert.equal(await execution.rest(), 'once');
      await execution.endsWith(0);
    },
  ],
  [
    "runs a command with the request's variables in the requested directory",
    async ({ start, openCommand, runtime, launched, sandboxId, readFile }) => {
      const requestIn = async (name: string) => {
        const workingDir = `${launched.spec.workingDir}/${name}`;
        await runtime.files.makeDirectory(sandboxId, workingDir, neverAborts);
        return { env: { EXTRA: `two words = "${name}"` }, workingDir };
      };
      const started = await start('tells', await requestIn('started'));
      assert.equal(await started.rest(), 'two words = "started"\n');
      await started.ended();
      const { execution, read } = await openCommand('tells', await requestIn('opened'));
      assert.equal(await read(100), 'two words = "opened"\n');
      await execution.exited;
      for (const name of ['started', 'opened']) assert.equal(await readFile(sandboxId, `${name}/where`), 'here\n', name);
    },
  ],
  [
    'stops waiting for the end of a command if the signal fires',
    async ({ start, runtime, sandboxId }) => {
      const execution = await start('sleeps');
      const reason = new Error('no longer wanted');
      const controller = new AbortController();
      const waits = [AbortSignal.abort(reason), controller.signal].map((signal) => runtime.executions.ended(sandboxId, execution.id, signal));
      const rejected = waits.map((wait, index) => assertRejects(wait, reason, ['ended', 'ended, after it was called'][index]));
      controller.abort(reason);
      await execution.signal('SIGKILL');
      await Promise.all(rejected);
    },
  ],
  [
    "writes to stderr why a command can't be started",
    async ({ start, commands }) => {
      const requests = [
        [{ command: commands.missing }, /\S/], [{ command: ['--version'] }, /--version/], [{ command: commands.speaks, workingDir: '/nowhere/at/all' }, /\/nowhere\/at\/all/],
      ] as const;
      for (const [request, why] of requests) {
        const execution = await start('missing', request);
        const { exitCode, reason } = await execution.ended();
        const what = JSON.stringify(request);
        assert.ok(exitCode === 126 || exitCode === 127, `the exit code of ${what} is ${exitCode}`);
        assert.notEqual(reason?.code, 'execution_attached', what);
        assert.match(await execution.rest(0, 'stderr'), why, `the standard error of ${what}`);
      }
      await assertFailure(start('speaks', { workingDir: 'relative' }), 'invalid_request');
    },
  ],
  [
    'reports an exit code of 128 plus the signal that ended a command',
    async ({ start, traits }) => {
      await (await start('ends itself')).endsWith(128 + 15);
      // Any signal kills a command that is not durable.
      for (const [name, number] of [['SIGINT', traits.durable ? 2 : 9], ['SIGKILL', 9]] as const) {
        const execution = await start('sleeps');
        await execution.some(1);
        await execution.signal(name);
        await execution.endsWith(128 + number);
        await execution.signal(name);
      }
      for (let time = 0; time < 5; time += 1) {
        const execution = await start('sleeps');
        await execution.signal('SIGTERM');
        await execution.endsWith(traits.durable ? 128 + 15 : 128 + 9);
      }
      const execution = await start('sleeps');
      await assertFailure(execution.signal('SIGNONE'), 'invalid_request');
    },
  ],
  [
    'passes binary input to a command, and the end of the input',
    async ({ start }) => {
      const bytes = Uint8Array.from({ length: 300_007 }, (_, index) => (index * 7919) % 256);
      const execution = await start('copies', { stdin: true });
      const copied = execution.rest();
      await execution.write(bytes.subarray(0, 100_001));
      await execution.write(bytes.subarray(100_001), true);
      assert.ok(Buffer.from(await copied, 'latin1').equals(Buffer.from(bytes)), 'the output differs from the input');
      await execution.endsWith(0);
      await assertFailure(execution.write('more'), 'input_closed');
      const closed = await start('copies');
      await closed.endsWith(0);
      await assertFailure(closed.write('more'), 'input_closed');
    },
  ],
  [
    'lets several readers continue at any byte, also after the end',
    async ({ start, random }) => {
      const execution = await start('numbers');
      const cutAt = async (): Promise<string> => {
        let got = '';
        while (got.length < numberedBytes) {
          const before = got.length;
          // Bytes beyond the cut are lost with the connection.
          const wanted = 1 + random(numberedBytes / 4);
          got += (await execution.some(wanted, before)).slice(0, wanted);
        }
        return got;
      };
      for (const got of await Promise.all([cutAt(), cutAt(), execution.rest()])) checkNumbered(got);
      await execution.ended();
      const late = random(numberedBytes);
      checkNumbered(await execution.rest(late), late);
    },
  ],
  [
    'fails with execution_not_found for an unknown or removed execution',
    async ({ start, runtime, sandboxId, launch }) => {
      const { executions } = runtime;
      await assertFailure(executions.state(sandboxId, 'exec-none'), 'execution_not_found');
      await assertFailure(executions.state(launch().id, 'exec-none'), 'sandbox_not_found');
      const request = { stream: 'stdout', after: 0, follow: false } as const;
      await assertFailure(executions.output(sandboxId, 'exec-none', request, neverAborts), 'execution_not_found');
      await executions.remove(sandboxId, 'exec-none');
      const execution = await start('speaks');
      await execution.ended();
      await execution.remove();
      await execution.remove();
      await assertFailure(execution.state(), 'execution_not_found');
    },
  ],
  [
    'kills all processes of a command that is removed',
    async (stage) => {
      const { start, sandboxId, readFile } = stage;
      const execution = await startBeating(stage);
      await execution.remove();
      const last = await readFile(sandboxId, 'beat');
      // This takes longer than many beats.
      await (await start('numbers')).ended();
      assert.equal(await readFile(sandboxId, 'beat'), last, 'a process of the removed command still writes heartbeats');
    },
  ],
  [
    'continues a command when its frozen sandbox is resumed',
    async ({ start, runtime, launched, sandboxId, random, traits }) => {
      const execution = await start('numbers');
      const reading = execution.rest();
      const copying = await start('copies', { stdin: true });
      await execution.some(1 + random(numberedBytes / 2));
      await freeze(runtime, sandboxId);
      assert.equal((await execution.state()).durable, traits.durable);
      await assertFailure(copying.write('more'), 'sandbox_not_running');
      await assertFailure(start('speaks'), 'sandbox_not_running');
      assert.equal((await runtime.resume(launched, neverAborts)).state, 'running');
      checkNumbered(await reading);
      // An engine may handle the event of the freeze after the thaw. Then the sandbox seems frozen until the event of the thaw.
      await eventually(`the command in ${sandboxId} accepts input`, () => copying.write('more', true).then(() => true, falseIfNotRunning));
      assert.equal(await copying.rest(), 'more');
    },
    'if it freezes',
  ],
  [
    'marks running commands as lost when the sandbox is stopped, and keeps their output',
    async ({ start, runtime, open, launched, sandboxId, traits }) => {
      const over = await start('speaks');
      await over.ended();
      const execution = await start('sleeps');
      assert.equal(await execution.some(6), 'ready\n');
      // Output is kept a moment after it is written.
      const other = execution.by(await open());
      if (traits.durable) await waitFor(`the output of ${other.id} is kept`, other.state, ({ stdout }) => stdout.end === 6);
      const following = execution.rest();
      await runtime.stop(sandboxId);
      const lost = await execution.ended();
      assert.equal(await following, 'ready\n');
      assert.equal((await over.state()).exitCode, 7);
      if (!traits.durable) return;
      assert.deepEqual([lost.status, lost.exitCode, lost.reason?.code], ['lost', null, 'execution_sandbox_ended']);
      await runtime.resume(launched, neverAborts);
      assert.equal((await execution.state()).reason?.code, 'execution_sandbox_ended');
      assert.equal(await execution.rest(), 'ready\n');
    },
    'own sandbox',
  ],
  [
    'copies 3 MiB of binary input to stdout unchanged',
    async ({ start, random }) => {
      const seed = random(256);
      const bytes = Buffer.from(Uint8Array.from({ length: 3 << 20 }, (_, index) => (index * 31 + (index >> 8) * 7 + seed) % 256));
      const execution = await start('copies', { stdin: true });
      const digest = createHash('sha256');
      const reading = execution.rest();
      await execution.write(bytes, true);
      assert.equal(digest.update(Buffer.from(await reading, 'latin1')).digest('hex'), createHash('sha256').update(bytes).digest('hex'));
    },
  ],
];

/** The contract of the executions of every sandbox runtime. */
export function sandboxExecutionsContract(
  createHarness: () => Promise<SandboxExecutionsHarness>, traits: SandboxExecutionsTraits,
): ContractCase[] {
  return executionCases(createHarness, traits, [
    ...basicCases,
    ...slowReaderCases,
    ...terminalCases,
    ...(traits.durable ? survivalCases : []),
    ...(traits.folder === 'visible' ? tamperedCases : []),
  ]);
}

