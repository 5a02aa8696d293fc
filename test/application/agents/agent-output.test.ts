import { setImmediate as tick } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { AgentMemory } from '../../../src/application/agents/agent-memory-limit.ts';
import { AgentOutput } from '../../../src/application/agents/agent-output.ts';
import { createManualClock } from '../../doubles/memory/index.ts';

const bytes = (text: string) => new TextEncoder().encode(text);

function createOutput(began: number | null = null) {
  const clock = createManualClock();
  const memory = new AgentMemory(1000, clock);
  let agent: ReadableStreamDefaultController<Uint8Array> | undefined;
  const stdout = new ReadableStream<Uint8Array>({ start: (controller) => void (agent = controller) });
  const output = new AgentOutput(stdout, memory.share(), began);
  return { clock, memory, output, reader: output.stream.getReader(), write: (text: string) => agent?.enqueue(bytes(text)) };
}

test('output that is held back is not counted if the session leaves before it gets it', async () => {
  const { memory, output, reader, write } = createOutput();
  write('first\n');
  await reader.read();
  void reader.read().catch(() => {});
  await output.hold();
  write('second\n');
  await tick();
  await reader.cancel();
  await tick();
  expect([output.offset, output.isAbandoned, memory.held]).toEqual([6, true, 0]);
});

test('output that waits for memory is neither read nor counted if it is held meanwhile', async () => {
  const { memory, output, reader, write } = createOutput();
  const [first, second] = [memory.share(), memory.share()];
  first.add(1000);
  // Uses the right to continue above the limit.
  await second.waitForRoom(1);
  let hasRead = false;
  const read = reader.read().finally(() => (hasRead = true));
  write('answer\n');
  await tick();
  await output.hold();
  first.add(-1000);
  await tick();
  expect([output.offset, hasRead, memory.held]).toEqual([0, false, 0]);
  output.release();
  expect(await read).toEqual({ done: false, value: bytes('answer\n') });
  expect([output.offset, memory.held]).toEqual([7, 7]);
});

test('output that is held back at first comes after its release, and is counted from where the turn began', async () => {
  const { output, reader, write } = createOutput(100);
  const read = reader.read();
  write('answer\n');
  await tick();
  expect(output.offset).toBe(100);
  output.release();
  expect(await read).toEqual({ done: false, value: bytes('answer\n') });
  expect(output.offset).toBe(107);
});

test('after the exit, output that is held back is kept until it is released, and then ends in time', async () => {
  const { clock, output, reader, write } = createOutput(0);
  const read = reader.read();
  write('answer\n');
  const ended = output.endAfterExit(clock);
  for (let seconds = 0; seconds < 60; seconds += 5) {
    await tick();
    clock.advance(5000);
  }
  output.release();
  expect(await read).toMatchObject({ done: false });
  const end = reader.read();
  await tick();
  clock.advance(5000);
  await ended;
  expect([await end, output.hasEnded]).toEqual([{ done: true, value: undefined }, true]);
});
