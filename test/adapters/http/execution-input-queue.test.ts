import { expect, test } from 'vitest';
import { ExecutionInputQueue } from '../../../src/adapters/http/execution-input-queue.ts';
import { until } from '../../support/until.ts';

const tooMuch = new Uint8Array(3_000_000);

/** Returns a queue that writes with `write`, and its client, which records pauses and failures. */
function createQueue(write: (content: ReadableStream<Uint8Array>) => Promise<void>) {
  const client = { isPaused: false, passed: 0, failures: [] as unknown[] };
  const socket = { pause: () => void (client.isPaused = true), resume: () => void (client.isPaused = false) };
  const passed = (bytes: number) => void (client.passed += bytes);
  return { client, queue: new ExecutionInputQueue({ socket, write, passed, failed: (error) => client.failures.push(error) }) };
}

async function countBytes(content: ReadableStream<Uint8Array>): Promise<number> {
  let count = 0;
  for await (const { length } of content) count += length;
  return count;
}

test('a client is paused while too much input waits', async () => {
  const reads = Promise.withResolvers<void>();
  const read: number[] = [];
  const { client, queue } = createQueue((content) => reads.promise.then(async () => void read.push(await countBytes(content))));
  queue.push(tooMuch);
  expect(client.isPaused).toBe(true);
  reads.resolve();
  await until(() => client.isPaused, (isPaused) => !isPaused);
  queue.push(tooMuch);
  await queue.close();
  expect([read, client.passed, client.failures]).toEqual([[6_000_000, 0], 6_000_000, []]);
});

test('a client that closes its input while it is paused is read again', async () => {
  const { client, queue } = createQueue(() => Promise.withResolvers<void>().promise);
  queue.push(tooMuch);
  expect(client.isPaused).toBe(true);
  queue.end();
  await until(() => client.isPaused, (isPaused) => !isPaused);
});

test('after a failed write the client is read again, and its later input fails too and is not closed', async () => {
  const refused = new Error('refused');
  const attempts: ReadableStream<Uint8Array>[] = [];
  const { client, queue } = createQueue(async (content) => {
    attempts.push(content);
    throw refused;
  });
  queue.push(tooMuch);
  expect(client.isPaused).toBe(true);
  await until(() => client.isPaused, (isPaused) => !isPaused);
  expect(client.failures).toEqual([refused]);
  queue.push(tooMuch);
  await expect(queue.close()).rejects.toBe(refused);
  await until(() => client.passed, (passed) => passed === 6_000_000);
  expect([attempts.length, client.isPaused, client.failures]).toEqual([1, false, [refused, refused]]);
});
