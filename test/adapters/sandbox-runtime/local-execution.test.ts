import { expect, test, vi } from 'vitest';
import { LocalExecution } from '../../../src/adapters/sandbox-runtime/local-execution.ts';
import { isFailureOf } from '../../../src/domain/failure.ts';
import { neverAborts } from '../../../src/ports/abort-signals.ts';

function attached(stdin: WritableStream<Uint8Array>) {
  const { promise: exited, resolve: exit } = Promise.withResolvers<number>();
  const streams = { stdin, stdout: ReadableStream.from<Uint8Array>([]), stderr: ReadableStream.from<Uint8Array>([]) };
  const start = { executionId: 'exec-1', command: ['cat'], stdin: true, tty: null };
  return { execution: new LocalExecution(start, { ...streams, exited, kill: async () => {} }, { code: 'execution_attached' }), exit };
}

test('input leaves nothing in memory until the command ends', async () => {
  const { execution } = attached(new WritableStream());
  // Each callback of a promise stays in memory until the promise is settled.
  const waiting = vi.spyOn(execution.ended, 'then');
  await execution.write(ReadableStream.from(Array.from({ length: 100 }, () => new Uint8Array(1))), false, neverAborts);
  expect(waiting).not.toHaveBeenCalled();
});

test('a write that waits for the command fails when the command ends', async () => {
  const { execution, exit } = attached(new WritableStream({ write: () => new Promise(() => {}) }));
  const writing = execution.write(ReadableStream.from([new Uint8Array(1)]), false, neverAborts);
  exit(0);
  await expect(writing).rejects.toSatisfy((error: unknown) => isFailureOf(error, 'input_closed'));
});
