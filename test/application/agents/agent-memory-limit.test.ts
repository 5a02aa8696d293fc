import { setImmediate as tick } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { createAcpProtocol } from '../../../src/adapters/agent-protocol/acp/index.ts';
import { createInMemoryStore } from '../../../src/adapters/store/sqlite/index.ts';
import { AgentMemory, type MemoryShare } from '../../../src/application/agents/agent-memory-limit.ts';
import { Agents } from '../../../src/application/agents/agents.ts';
import { TurnRecorder } from '../../../src/application/conversations/turns/turn-recorder.ts';
import { newConversation } from '../../../src/domain/conversation.ts';
import { newSandbox } from '../../../src/domain/sandbox.ts';
import { sandboxSpec } from '../../../src/domain/sandbox-spec.ts';
import { neverAborts } from '../../../src/ports/abort-signals.ts';
import type { SandboxExecutions } from '../../../src/ports/sandbox-executions.ts';
import type { Execution } from '../../../src/ports/sandbox-runtime.ts';
import { createManualClock } from '../../doubles/memory/index.ts';
import { createReady, failureOf } from '../conversations/support.ts';
import { agent, plain, said } from '../conversations/world.ts';

/** Waits for room for the share. `went` says whether it has got it. */
function asking(share: MemoryShare, bytes: number) {
  const state = { went: false };
  void share.waitForRoom(bytes).then(() => (state.went = true));
  return state;
}

describe('the memory limit of agents', () => {
  test('lets one agent continue above the limit, and makes the others wait in order', async () => {
    const memory = new AgentMemory(100, createManualClock());
    const [a, b, c] = [memory.share(), memory.share(), memory.share()];
    expect(() => memory.check()).not.toThrow();
    await a.waitForRoom(90);
    a.add(100);
    expect(() => memory.check()).toThrow(expect.objectContaining({ code: 'conversation_limit_reached', context: { limit: 'agent_memory', max: 100, retryAfterSeconds: 10 } }));
    const [second, third] = [asking(b, 10), asking(c, 10)];
    await tick();
    expect([second.went, third.went, b.isHeldBack, c.isHeldBack]).toEqual([true, false, false, true]);
    await b.waitForRoom(50);
    a.add(-95);
    await tick();
    expect([third.went, c.isHeldBack, memory.held]).toEqual([true, false, 5]);
  });

  test('lets the next agent continue if the first one sends nothing for 5 seconds or ends', async () => {
    const clock = createManualClock();
    const memory = new AgentMemory(100, clock);
    memory.share().add(200);
    const [a, b, c] = [memory.share(), memory.share(), memory.share()];
    const states = [asking(a, 1), asking(b, 1), asking(c, 1)];
    const went = async () => (await tick(), states.map((state) => state.went));
    expect(await went()).toEqual([true, false, false]);
    clock.advance(5000);
    expect(await went()).toEqual([true, true, false]);
    b.close();
    expect(await went()).toEqual([true, true, true]);
  });

  test('frees the memory of an agent that ends, and ends its wait', async () => {
    const memory = new AgentMemory(100, createManualClock());
    const [a, b, c] = [memory.share(), memory.share(), memory.share()];
    a.setOutput('line', 60);
    a.setOutput('chunk', 60);
    await b.waitForRoom(1);
    const waits = asking(c, 1);
    c.close();
    await tick();
    expect(waits.went).toBe(true);
    a.close();
    a.setOutput('line', 5);
    expect(memory.held).toBe(0);
  });
});

const encoder = new TextEncoder();
const text = (n: number, size: number): string => `${n} `.padEnd(size, 'x');

/** The execution of an agent that sends `count` texts of `size` characters in its turn, as fast as they are read. */
function noisyAgent(count: number, size: number): Execution {
  const prompted = Promise.withResolvers<number>();
  const out: object[] = [];
  const wake: (() => void)[] = [];
  const say = (message: object): void => {
    out.push({ jsonrpc: '2.0', ...message });
    wake.pop()?.();
  };
  const stdin = new WritableStream<Uint8Array>({
    write(chunk) {
      const { id, method } = JSON.parse(new TextDecoder().decode(chunk)) as { id: number; method: string };
      if (method === 'initialize') say({ id, result: { protocolVersion: 1 } });
      if (method === 'session/new') say({ id, result: { sessionId: 's' } });
      if (method === 'session/prompt') prompted.resolve(id);
    },
  });
  async function* output(): AsyncGenerator<Uint8Array> {
    for (let answers = 0; answers < 2; answers += 1) {
      if (out.length === 0) await new Promise<void>((resolve) => void wake.push(resolve));
      yield encoder.encode(`${JSON.stringify(out.shift())}\n`);
    }
    const id = await prompted.promise;
    for (let n = 0; n < count; n += 1) {
      const update = { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: text(n, size) } };
      const line = encoder.encode(`${JSON.stringify({ jsonrpc: '2.0', method: 'session/update', params: { sessionId: 's', update } })}\n`);
      // A long line comes in pieces, as from a pipe.
      for (let at = 0; at < line.length; at += chunkBytes) yield line.subarray(at, at + chunkBytes);
    }
    yield encoder.encode(`${JSON.stringify({ jsonrpc: '2.0', id, result: { stopReason: 'end_turn' } })}\n`);
    await new Promise(() => {});
  }
  return {
    stdin, stdout: ReadableStream.from(output()), stderr: ReadableStream.from<Uint8Array>([]), exited: new Promise(() => {}), kill: async () => {},
  };
}

const chunkBytes = 16 * 1024;

/** Lets noisy agents send output at the same time into a store that writes slowly, one batch after the other. */
async function speak({ agents: count, texts, size, maxBytes }: Record<'agents' | 'texts' | 'size' | 'maxBytes', number>) {
  const clock = createManualClock();
  const memory = new AgentMemory(maxBytes, clock);
  const { events } = createInMemoryStore();
  let peak = 0;
  let refused = 0;
  let writing: Promise<unknown> = Promise.resolve();
  const slowly = async (drafts: Parameters<typeof events.append>[0]): Promise<number> => {
    for (let turns = 0; turns < 3; turns += 1) await tick();
    peak = Math.max(peak, memory.held);
    if (memory.isFull) refused += 1;
    return await events.append(drafts);
  };
  const append: typeof events.append = (drafts) => {
    const written = writing.then(() => slowly(drafts));
    writing = written.catch(() => {});
    return written;
  };
  const executions = { open: async () => ({ ...noisyAgent(texts, size), durable: false, handedOver: { bytes: 0, isCut: false } }) } as unknown as SandboxExecutions;
  const logger = { debug() {}, info() {}, warn() {}, error() {} };
  const agents = new Agents({ runtime: { executions }, protocols: [createAcpProtocol()], secrets: { get: () => null }, memory, clock, logger });
  const spec = sandboxSpec({ id: 'noisy', agent });
  const sandbox = newSandbox({ id: 'sb', ownerId: 'me', spec, sessionApiKey: 'key', now: 0 });
  await Promise.all(Array.from({ length: count }, async (_, n) => {
    const conversationId = `conv-${n}`;
    const live = await agents.open({ conversationId, sandbox, workingDir: '/', sessionId: null }, neverAborts);
    const asked = { title: null, selectedRepository: null, selectedBranch: null, permissionPolicy: null, repository: null, initialMessage: null };
    const conversation = newConversation({ ...asked, id: conversationId, ownerId: 'me', taken: sandbox, sandboxId: 'sb', spec, now: 0 });
    const recorded = { written: 0, permissions: new Map(), lastSequence: 0 };
    const { memory: share } = live.process;
    const recorder = new TurnRecorder({ eventStore: { ...events, append }, clock, signal: neverAborts, memory: share, recorded, turnId: 'msg' }, conversation);
    const message = { content: [{ type: 'text' as const, text: 'go' }] };
    const turn = await live.prompt(message, { update: (update) => recorder.record(update), permission: async () => null });
    await recorder.finish();
    expect(turn.stopReason).toBe('end_turn');
  }));
  const said = async (n: number): Promise<string> => {
    let all = '';
    for (let after = 0; ;) {
      const page = await events.read({ ownerId: 'me', conversationId: `conv-${n}`, kinds: ['message_chunk'] }, after, 1000);
      for (const event of page) all += event.kind === 'message_chunk' ? event.data.text : '';
      if (page.length < 1000) return all;
      after = page.at(-1)?.sequence ?? 0;
    }
  };
  return { peak, refused, memory, said };
}

describe('many noisy agents over a slow store', () => {
  test.each([
    ['short texts', { agents: 20, texts: 400, size: 1000, maxBytes: 500_000 }],
    ['lines that are each longer than an equal share', { agents: 20, texts: 4, size: 100_000, maxBytes: 500_000 }],
    ['lines that are each longer than the limit', { agents: 5, texts: 3, size: 200_000, maxBytes: 50_000 }],
  ])('with %s use bounded memory, and all their output is written', async (_what, load) => {
    const { peak, refused, memory, said } = await speak(load);
    const whole = Array.from({ length: load.texts }, (_, n) => text(n, load.size)).join('');
    for (let n = 0; n < load.agents; n += 1) expect(await said(n) === whole, `agent ${n}`).toBe(true);
    expect(memory.held).toBe(0);
    expect(refused, 'the bound was reached').toBeGreaterThan(0);
    // Above the limit each agent may hold one chunk and its parsed form, and one agent a message, its parts and its last line.
    const beyond = load.agents * 3 * chunkBytes + 3 * whole.length;
    expect(peak).toBeLessThan(load.maxBytes + beyond);
    expect(load.maxBytes + beyond, 'which is less than they say').toBeLessThan(load.agents * whole.length);
  });
});

test('new messages and conversations are refused while agents hold too much memory', async () => {
  const { conversations, agentMemory, log, rested, id } = await createReady();
  const claim = { ownerId: 'me', key: 'k', fingerprint: 'f' };
  const sent = await conversations.send('me', id, said('before'), claim);
  await rested();
  const held = 2 ** 40;
  agentMemory.share().add(held);
  const refusal = { code: 'conversation_limit_reached', context: { limit: 'agent_memory', max: 256 * 2 ** 20 } };
  expect(await failureOf(conversations.send('me', id, said('go')))).toMatchObject(refusal);
  expect(await failureOf(conversations.start('me', plain))).toMatchObject(refusal);
  expect((await conversations.send('me', id, said('before'), claim)).messageId, 'a repeat is answered').toBe(sent.messageId);
  agentMemory.add(-held);
  await conversations.send('me', id, said('after'));
  await rested();
  expect((await log()).filter(({ kind, actor }) => kind === 'message' && actor === 'agent')).toHaveLength(2);
});
