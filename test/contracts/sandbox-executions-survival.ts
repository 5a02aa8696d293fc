import assert from 'node:assert/strict';
import { neverAborts } from '../../src/ports/abort-signals.ts';
import { assertFailure } from './contract.ts';
import { checkNumbered, type ExecutionsCase, numberedBytes, opened, startBeating } from './sandbox-executions-harness.ts';
import { eventually, freeze, waitFor } from './sandbox-runtime-harness.ts';

/** What continues, and what ends, after the end of the process that started a command. */
export const survivalCases: readonly ExecutionsCase[] = [
  [
    'a command continues after its runtime is closed, and another runtime reads every byte once',
    async ({ start, runtime, open, random }) => {
      const execution = await start('numbers');
      let got = await execution.some(1 + random(numberedBytes / 2));
      await runtime.close();
      const later = execution.by(await open());
      const wanted = random(numberedBytes / 4);
      got += (await later.some(wanted, got.length)).slice(0, wanted);
      got += await later.rest(got.length);
      checkNumbered(got);
      const ended = await later.ended();
      assert.deepEqual([ended.status, ended.exitCode, ended.durable], ['exited', 0, true]);
      assert.deepEqual(ended.stdout, { oldest: 0, end: numberedBytes });
    },
  ],
  [
    'two runtimes can read from and write to one execution',
    async ({ start, open }) => {
      const first = await start('copies', { stdin: true });
      const second = first.by(await open());
      await first.write('one ');
      assert.equal(await second.some(4), 'one ');
      await second.write('two ');
      assert.equal(await first.some(8), 'one two ');
      await second.write('three', true);
      const [ended, same] = await Promise.all([first.ended(), second.ended()]);
      assert.deepEqual([ended.status, ended.exitCode, same.exitCode], ['exited', 0, 0]);
      assert.deepEqual([await first.rest(), await second.rest(4)], ['one two three', 'two three']);
      await assertFailure(second.write('more'), 'input_closed');
      await second.remove();
      await assertFailure(second.state(), 'execution_not_found');
    },
  ],
  [
    "a command's input stays open and signals work after its runtime is closed",
    async ({ start, runtime, open }) => {
      const execution = await start('copies', { stdin: true });
      const sleeping = await start('sleeps');
      await execution.write('before ');
      await runtime.close();
      const next = await open();
      const later = execution.by(next);
      assert.equal((await later.state()).status, 'running');
      await later.write('after');
      assert.equal(await later.some(12), 'before after');
      await later.write('', true);
      await later.endsWith(0);
      await sleeping.by(next).signal('SIGKILL');
      const killed = await sleeping.by(await open()).ended();
      assert.deepEqual([killed.status, killed.exitCode], ['exited', 137]);
    },
  ],
  [
    'another runtime can read an execution while its sandbox is frozen or stopped',
    async ({ start, runtime, open, sandboxId, launched }) => {
      const over = await start('speaks');
      await over.ended();
      const execution = await start('sleeps');
      await execution.some(6);
      const other = await open();
      // Output is kept a moment after it is written.
      await waitFor(`the output of ${execution.id} is kept`, execution.by(other).state, ({ stdout }) => stdout.end === 6);
      // A command that begins during the freeze of another runtime could stop the engine from handling the container.
      await freeze(other, sandboxId);
      const [later, ended] = [execution.by(other), over.by(other)];
      assert.equal((await later.state()).status, 'running');
      assert.deepEqual([(await ended.state()).exitCode, await ended.rest(1)], [7, 'ut\n']);
      assert.equal(await later.some(5, 1), 'eady\n');
      await runtime.stop(sandboxId);
      const lost = await later.ended();
      assert.deepEqual([lost.status, lost.reason?.code, lost.stdout.end], ['lost', 'execution_sandbox_ended', 6]);
      assert.equal(await later.rest(), 'ready\n');
      await runtime.resume(launched, neverAborts);
      assert.equal((await later.state()).status, 'lost');
    },
    'own sandbox', 'if it freezes',
  ],
  [
    "another runtime reopens a command's streams, without a missing or repeated byte",
    async ({ openCommand, runtime, open, sandboxId, random }) => {
      const lines = Array.from({ length: 200 }, (_, line) => `${line} ${'x'.repeat(random(500))}\n`).join('');
      const first = await openCommand('copies');
      assert.deepEqual([first.execution.durable, first.execution.handedOver], [true, { bytes: 0, isCut: false }]);
      const written = 1 + random(lines.length - 1);
      await first.write(lines.slice(0, written));
      const seen = await first.read(1 + random(written - 1));
      await runtime.close();
      const next = await open();
      const later = opened(await next.executions.reopen(sandboxId, first.id, seen.length, neverAborts));
      assert.deepEqual(later.execution.handedOver, { bytes: written, isCut: !lines.slice(0, written).endsWith('\n') });
      await later.write(lines.slice(written));
      assert.equal(seen + await later.read(lines.length - seen.length), lines);
      await later.execution.kill();
      await assertFailure(next.executions.state(sandboxId, first.id), 'execution_not_found');
    },
  ],
  [
    'another runtime reads the rest of an ended command after its earlier output was dropped',
    async ({ openCommand, runtime, open, sandboxId }) => {
      const first = await openCommand('speaks');
      assert.equal(await first.execution.exited, 7);
      await first.execution.forgetBefore({ stdin: 0, stdout: 2 });
      await runtime.close();
      const next = await open();
      const later = opened(await next.executions.reopen(sandboxId, first.id, 2, neverAborts));
      assert.equal(await later.read(2), 't\n');
      assert.equal(await later.execution.exited, 7);
      await assert.rejects(later.write('more'), 'a command that has ended takes input');
    },
  ],
  [
    'a second command with the same id replaces the first',
    async ({ openCommand, sandboxId, runtime }) => {
      const first = await openCommand('sleeps');
      assert.equal(await first.read(6), 'ready\n');
      const second = await openCommand('copies', { executionId: first.id });
      await first.execution.exited;
      await second.write('here\n');
      assert.equal(await second.read(5), 'here\n');
      assert.equal((await runtime.executions.state(sandboxId, first.id)).status, 'running');
    },
  ],
  [
    'a command that is removed while its sandbox is frozen ends at the latest on resume',
    async (stage) => {
      const { start, runtime, open, sandboxId, launched, readFile } = stage;
      const execution = await startBeating(stage);
      await freeze(runtime, sandboxId);
      await execution.remove();
      await assertFailure(execution.by(await open()).state(), 'execution_not_found');
      await runtime.resume(launched, neverAborts);
      let last = await readFile(sandboxId, 'beat');
      await eventually(`the command ${execution.id} in ${sandboxId} has ended`, async () => {
        await (await start('numbers')).ended();
        const before = last;
        last = await readFile(sandboxId, 'beat');
        return last === before;
      });
    },
    'if it freezes',
  ],
];
