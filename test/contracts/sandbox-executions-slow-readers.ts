import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import { isFailureOf } from '../../src/domain/failure.ts';
import { neverAborts } from '../../src/ports/abort-signals.ts';
import { assertFails } from './contract.ts';
import { type ExecutionsCase, floodBytes } from './sandbox-executions-harness.ts';

const isDropped = (error: unknown): boolean => isFailureOf(error, 'output_dropped') && error.context.oldest > 0;

/** What happens if a command writes faster than its output is read. */
export const slowReaderCases: readonly ExecutionsCase[] = [
  [
    'does not slow down a command if nobody reads, and reports the dropped output',
    async ({ start, runtime, sandboxId }) => {
      const execution = await start('floods');
      const slow = (await runtime.executions.output(sandboxId, execution.id, { stream: 'stdout', after: 0, follow: true }, neverAborts)).getReader();
      await slow.read();
      const { exitCode, stdout: { oldest, end } } = await execution.ended();
      assert.deepEqual([exitCode, end], [0, floodBytes]);
      assert.ok(oldest > 0, 'no output is dropped');
      const readOn = async (): Promise<void> => {
        while (!(await slow.read()).done);
      };
      await assertFails(readOn(), isDropped, 'a slow reader gets output_dropped');
      await assertFails(execution.rest(0), isDropped, 'a read of dropped output fails with output_dropped');
      assert.equal((await execution.rest(oldest)).length, floodBytes - oldest);
    },
  ],
  [
    'makes a command wait for a reader that holds it, until this reader leaves',
    async ({ start, runtime, sandboxId }) => {
      const execution = await start('floods');
      const request = { stream: 'stdout', after: 0, follow: true, hold: true } as const;
      const holding = (await runtime.executions.output(sandboxId, execution.id, request, neverAborts)).getReader();
      let read = 0;
      for (let mib = 1; mib <= 32; mib += 1) {
        while (read < mib << 20) read += (await holding.read()).value?.length ?? assert.fail('the output ended');
        // A command that does not wait writes more than 32 MiB meanwhile.
        await pause(10);
      }
      const { status, stdout } = await execution.state();
      assert.equal(status, 'running', 'the command does not wait for its reader');
      assert.ok(stdout.end - read < 8 << 20, `${stdout.end - read} bytes ahead`);
      await holding.cancel();
      assert.deepEqual([(await execution.ended()).exitCode, (await execution.state()).stdout.end], [0, floodBytes]);
    },
  ],
  [
    'drops nothing for a reader that holds the command to its end',
    async ({ start, runtime, sandboxId }) => {
      const { id } = await start('floods');
      let read = 0;
      const request = { stream: 'stdout', after: 0, follow: true, hold: true } as const;
      for await (const chunk of await runtime.executions.output(sandboxId, id, request, neverAborts)) read += chunk.length;
      assert.equal(read, floodBytes, 'the bytes of the output');
    },
  ],
  [
    'ends a command that is killed while it waits for a reader',
    async ({ start, runtime, sandboxId }) => {
      const execution = await start('floods');
      const request = { stream: 'stdout', after: 0, follow: true, hold: true } as const;
      const holding = (await runtime.executions.output(sandboxId, execution.id, request, neverAborts)).getReader();
      const { value } = await holding.read();
      await execution.signal('SIGKILL');
      const { exitCode, stdout: { end } } = await execution.ended();
      assert.equal(exitCode, 137, 'the exit code of a killed command');
      let read = value?.length ?? 0;
      for (let next = await holding.read(); next.value !== undefined; next = await holding.read()) read += next.value.length;
      assert.equal(read, end);
    },
  ],
];
