import { describe, expect, test } from 'vitest';
import type { Reason } from '../../../src/domain/reason.ts';
import { AgentRefusal, type AgentStreams } from '../../../src/ports/agent-protocol.ts';
import { createMemoryAgentProtocol, refuseToResume } from '../../doubles/memory/agent.ts';
import { createReady } from './support.ts';
import { calm, createOne, plain, said, told, until, type WorldOptions } from './world.ts';

/** Ends the process of an agent: first its stdout, and later its stderr and its exit code. */
async function endsLate(world: ReturnType<typeof createOne>, code: number, words: string): Promise<void> {
  const process = world.host.executed.at(-1);
  process?.endOutput();
  await calm();
  process?.complain(words);
  process?.end(code);
}

/** Starts a conversation, calls `meanwhile` while the agent opens its session, and returns why the start failed. */
async function startOf(options: WorldOptions, meanwhile: (world: ReturnType<typeof createOne>) => Promise<void>) {
  const world = createOne({ beforeOpen: () => new Promise<void>(() => {}), ...options });
  const { conversation: { id } } = await world.conversations.start('me', plain);
  await until(() => world.host.running.length === 1);
  await calm();
  await meanwhile(world);
  const record = await until(() => world.store.conversations.find(id), (found) => found?.startStatus === 'ERROR');
  expect(world.host.running).toEqual([]);
  await world.close();
  expect(world.clock.pending).toBe(0);
  return record?.statusReason;
}

const tooNew: Reason = { code: 'agent_version_unsupported', offered: 9, supported: 1 };

/** Closes the streams of the agent, which then ends by itself. */
async function refuse({ stdin, stdout }: AgentStreams, reason: Reason): Promise<never> {
  await Promise.all([stdout.cancel(), stdin.close()]);
  throw new AgentRefusal(reason);
}

const notStarted = (cause: Reason) => ({ code: 'step_failed', step: 'STARTING_AGENT', cause: { code: 'agent_start_failed', cause } });
const ended = (exitCode: number | null, output: string): Reason => ({ code: 'agent_ended', cause: { code: 'agent_exited' }, exitCode, output });

describe('a start whose agent ends', () => {
  test('reports the exit code and the last stderr, even if they come after the end of stdout', async () => {
    const reason = await startOf({}, (world) => endsLate(world, 127, 'sh: agent: not found\n'));
    expect(reason).toEqual(notStarted(ended(127, 'sh: agent: not found')));
  });

  test('reports the exit code and the last stderr, even if a child process keeps the streams open', async () => {
    const reason = await startOf({}, async ({ host, clock }) => {
      host.executed.at(-1)?.complain('no licence\n');
      host.executed.at(-1)?.exit(3);
      await calm();
      clock.advance(5000);
      await calm();
      clock.advance(2000);
    });
    expect(reason).toEqual(notStarted(ended(3, 'no licence')));
  });

  test('reports the last stderr without an exit code if the process does not end in time', async () => {
    const reason = await startOf({}, async ({ host, clock }) => {
      host.executed.at(-1)?.complain('stuck');
      await calm();
      host.executed.at(-1)?.endOutput();
      await calm();
      clock.advance(5000);
      await calm();
      clock.advance(2000);
    });
    expect(reason).toEqual(notStarted(ended(null, 'stuck')));
  });

  test('reports no exit code if the agent refused the session', async () => {
    const world = createOne({ protocol: { name: 'acp', open: async ({ streams }) => await refuse(streams, tooNew), resume: refuseToResume } });
    const { conversation: { id } } = await world.conversations.start('me', plain);
    const record = await until(() => world.store.conversations.find(id), (found) => found?.startStatus === 'ERROR');
    expect(record?.statusReason).toEqual(notStarted(tooNew));
  });
});

describe('a turn of an earlier process', () => {
  test.each([
    ['ends, and so does its agent, if the agent refuses to continue', new AgentRefusal(tooNew), ['leave', 'remove']],
    ['leaves its agent to a later try if the protocol fails', new TypeError('boom'), ['leave']],
  ] as const)('%s', async (_, error, expected) => {
    const w = await createReady({ protocol: { ...createMemoryAgentProtocol(), resume: async () => await Promise.reject(error) } });
    w.host.executed.at(-1)?.end(0);
    await calm();
    const calls: string[] = [];
    w.runtime.executions.reopen = async () => ({
      stdin: new WritableStream(), stdout: new ReadableStream(), stderr: new ReadableStream(), exited: new Promise(() => {}), durable: true,
      handedOver: { bytes: 0, isCut: false }, forgetBefore: async () => {}, kill: async () => {}, leave: () => void calls.push('leave'),
    });
    w.runtime.executions.remove = async () => void calls.push('remove');
    const agent = { sessionId: 's', requestId: 1, stdin: 0, stdout: 0, from: 0, context: null };
    const { version, ...record } = await w.record();
    const turn = { messageId: 'msg-1', message: said('one'), sandboxVersion: 1, agent };
    await w.store.conversations.replace({ ...record, version: version + 1, turn, executionStatus: 'running' }, []);
    w.conversationReconciler.enqueue(w.id);
    await calm();
    expect(calls).toEqual(expected);
    expect((await w.record()).turn).toEqual(error instanceof AgentRefusal ? null : turn);
  });
});

describe('a turn whose agent ends', () => {
  test('reports the exit code and the last stderr, even if they come after the end of stdout', async () => {
    const w = await createReady({
      script: async (turn) => {
        await endsLate(w, 139, 'Segmentation fault\n');
        await turn.say('never');
      },
    });
    await w.conversations.send('me', w.id, said('go'));
    await w.rested();
    const reason = ended(139, 'Segmentation fault');
    expect(told(await w.log(), 'turn_ended').map(({ stopReason }) => stopReason)).toEqual(['interrupted']);
    expect((await w.record()).statusReason).toEqual(reason);
    expect(w.logged.join('\n')).toContain('Segmentation fault');
  });

  test('reports the exit code and the last stderr, even if a child process keeps the streams open', async () => {
    const w = await createReady({
      script: async (turn) => {
        w.host.executed.at(-1)?.complain('out of memory\n');
        w.host.executed.at(-1)?.exit(1);
        await turn.say('still to be read');
        await new Promise(() => {});
      },
    });
    await w.conversations.send('me', w.id, said('go'));
    await until(() => w.handed.length === 1);
    for (let seconds = 0; seconds < 10; seconds += 1) {
      await calm();
      w.clock.advance(1000);
    }
    await w.rested();
    expect((await w.record()).statusReason).toEqual(ended(1, 'out of memory'));
    expect(told(await w.log(), 'message').map(({ text }) => text)).toContain('still to be read');
  });

  test('reports the last stderr without the colours of a terminal', async () => {
    const w = await createReady({
      script: async (turn) => {
        await endsLate(w, 1, '\u001b[31mError:\u001b[0m \u001b[1mno\tlicence\u001b[0m\u0007\r\n');
        await turn.say('never');
      },
    });
    await w.conversations.send('me', w.id, said('go'));
    await w.rested();
    expect((await w.record()).statusReason).toEqual(ended(1, 'Error: no licence'));
  });

  test('redacts secrets in the last stderr, even if one is cut or has several lines', async () => {
    const [key, pem] = ['sk-live-0123456789', '-----BEGIN KEY-----\nMIIB\nabcd\n-----END KEY-----'];
    const w = await createReady({
      agent: { secrets: ['MODEL_KEY', 'PEM'] },
      secrets: { MODEL_KEY: key, PEM: pem },
      script: async (turn) => {
        // Of this the last 4,096 bytes are kept. They begin within the first key, and only blanks stand between the two keys.
        const words = `${pem} and `;
        await endsLate(w, 1, `${key}${' '.repeat(4096 - 10 - words.length)}${words}`);
        await turn.say('never');
      },
    });
    await w.conversations.send('me', w.id, said('go'));
    await w.rested();
    expect((await w.record()).statusReason).toEqual(ended(1, '********** and'));
  });
});

describe('a deleted sandbox', () => {
  test('is the reason of the turn that its deletion ended', async () => {
    const w = await createReady({ script: () => new Promise(() => {}) });
    await w.conversations.send('me', w.id, said('one'));
    await until(() => w.handed.length === 1);
    await w.sandboxes.delete('me', w.sandboxId);
    const ended = await until(async () => (await w.log()).find(({ kind }) => kind === 'turn_ended'), (found) => found !== undefined);
    expect(ended).toMatchObject({ data: { stopReason: 'interrupted' }, reason: { code: 'sandbox_deleted' } });
  });
});

describe('a stopped sandbox', () => {
  test('gets a new agent, even if the end of the old one was not reported', async () => {
    const w = await createReady();
    w.host.endsUnnoticed = true;
    await w.sandboxes.pause('me', w.sandboxId, 'stop');
    await w.conversations.send('me', w.id, said('one'));
    await w.rested();
    expect(w.handed).toEqual(['one']);
    expect(w.host.executed).toHaveLength(2);
  });

  test('keeps a message if it was stopped during the agent start, and sends it after a resume', async () => {
    let starts = 0;
    const w = await createReady({ beforeOpen: () => ((starts += 1) === 2 ? new Promise<void>(() => {}) : Promise.resolve()) });
    await w.sandboxes.pause('me', w.sandboxId, 'stop');
    await w.conversations.send('me', w.id, said('one'));
    await until(() => starts === 2);
    await w.sandboxes.pause('me', w.sandboxId, 'stop');
    await until(w.view, ({ sandboxStatus }) => sandboxStatus === 'PAUSED');
    await w.sweeper.sweep();
    await calm();
    expect(await w.record()).toMatchObject({ queue: [{ message: said('one') }], turn: null, statusReason: null });
    expect(told(await w.log(), 'turn_ended')).toEqual([]);
    await w.sandboxes.resume('me', w.sandboxId);
    await w.rested();
    expect(w.handed).toEqual(['one']);
  });
});
