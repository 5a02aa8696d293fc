import { expect, test } from 'vitest';
import { loseExecution, newExecution, observeExecution, timeOutExecution } from '../../src/domain/execution.ts';

test('an execution that has ended is not lost, timed out or changed afterwards', () => {
  const output = { stdout: { oldest: 0, end: 1 }, stderr: { oldest: 0, end: 0 } };
  const running = newExecution({ id: 'e', sandboxId: 'sb', command: ['true'], stdin: false, tty: false, timeoutMs: 1, now: 0 });
  const exited = observeExecution(running, { status: 'exited', exitCode: 0, durable: true, reason: null, ...output }, 1);
  expect(exited).toMatchObject({ status: 'exited', exitCode: 0, endedAt: 1 });
  expect(loseExecution(exited, { code: 'sandbox_deleted' }, 2)).toBe(exited);
  expect(timeOutExecution(exited)).toBe(exited);
  expect(observeExecution(exited, { status: 'lost', exitCode: null, durable: true, reason: null, ...output }, 2)).toBe(exited);
});
