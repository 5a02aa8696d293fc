import { text } from 'node:stream/consumers';
import { describe, expect, test } from 'vitest';
import { Failure } from '../../../src/domain/failure.ts';
import { explained } from '../../../src/domain/reason.ts';
import { neverAborts } from '../../../src/ports/abort-signals.ts';
import type { RepositoryCheckouts } from '../../../src/ports/repository-checkouts.ts';
import { SnapshotRefusal } from '../../../src/ports/work-tree-snapshot.ts';
import { createReady, failureOf } from './support.ts';
import { calm, createOne, plain, said, told, until } from './world.ts';

describe('the output of an agent', () => {
  test('is written in parts as it comes, and as a whole message when the message ends', async () => {
    const w = await createReady({
      script: async (turn) => {
        await turn.say('let me ', { channel: 'thought' });
        await turn.say('think', { channel: 'thought' });
        await turn.say('I ');
        await turn.say('edit');
        await turn.tool({ toolCallId: 'c', title: 'edit a', status: 'in_progress' });
        await turn.say('still ', { messageId: 'm1' });
        await turn.tool({ toolCallId: 'c', status: 'completed' });
        await turn.say('one', { messageId: 'm1' });
        await turn.say('other', { messageId: 'm2' });
        await turn.update({ kind: 'plan', entries: [{ content: 'rest', priority: 'low', status: 'pending' }] });
        await turn.update({ kind: 'usage', usedTokens: 1, contextTokens: 2, cost: null });
      },
    });
    await w.conversations.send('me', w.id, said('go'));
    await w.rested();
    const log = (await w.log()).filter(({ sequence, actor }) => sequence > 0 && actor === 'agent');
    const short = log.flatMap((event) => (event.kind === 'message' ? `${event.data.channel}: ${event.data.text}` : event.kind === 'tool_call' ? `${event.data.title} ${event.data.status}` : event.kind === 'message_chunk' ? [] : event.kind));
    expect(short).toEqual(['thought: let me think', 'answer: I edit', 'edit a in_progress', 'edit a completed', 'answer: still one', 'plan', 'usage', 'answer: other', 'turn_ended', 'execution_changed']);
    for (const event of log) {
      if (event.kind !== 'message') continue;
      const parts = log.flatMap((one) => (one.kind === 'message_chunk' && one.data.messageId === event.data.messageId ? one.data.text : []));
      expect(parts.join('')).toBe(event.data.text);
    }
  });

  test('is written in batches, complete and in order, even if it comes very fast', async () => {
    const appended: number[] = [];
    const flood = 100_000;
    const w = await createReady({
      store: (store) => ({
        ...store,
        events: {
          ...store.events,
          append: async (events) => {
            appended.push(events.length);
            await new Promise((resolve) => setImmediate(resolve));
            return await store.events.append(events);
          },
        },
      }),
      script: async (turn) => {
        for (let n = 0; n < flood; n += 1) await (n % 100 === 99 ? turn.tool({ toolCallId: `c${n % 2000}`, title: `${n}`, status: 'completed' }) : turn.say(`${n} `));
      },
    });
    await w.conversations.send('me', w.id, said('go'));
    await until(w.record, ({ turn, queue }) => turn === null && queue.length === 0);
    expect(appended[0]).toBe(1);
    expect(Math.max(...appended)).toBeLessThanOrEqual(400);
    let after = 0;
    const numbers: number[] = [];
    for (let events = await w.store.events.read({ ownerId: 'me' }, after, 1000); events.length > 0; events = await w.store.events.read({ ownerId: 'me' }, after, 1000)) {
      for (const event of events) {
        if (event.kind === 'message_chunk') numbers.push(...event.data.text.trim().split(' ').map(Number));
        if (event.kind === 'tool_call') numbers.push(Number(event.data.title));
      }
      after = events.at(-1)?.sequence ?? Infinity;
    }
    expect(numbers).toHaveLength(flood);
    expect(numbers.every((one, index) => one === index)).toBe(true);
  });

  test('never contains a secret of the deployment, even if the secret comes in parts', async () => {
    const secret = 'sk-live-0123456789';
    const w = await createReady({
      agent: { secrets: ['MODEL_KEY'] },
      secrets: { MODEL_KEY: secret },
      script: async (turn) => {
        for (const part of ['the key is sk-', 'live-01234', '56789, sk-', 'not this, and ', secret, ' s']) await turn.say(part);
        await turn.tool({ toolCallId: 'c', title: `echo ${secret}`, content: [{ type: 'text', text: `KEY=${secret}` }] });
        w.host.executed.at(-1)?.complain(`failed with ${secret}`);
        throw new Error(`401 for ${secret}`);
      },
    });
    expect(w.host.executed.at(-1)?.request.env).toEqual({ LEVEL: '3', MODEL_KEY: secret });
    await w.conversations.send('me', w.id, said('go'));
    await w.rested();
    w.host.executed.at(-1)?.complain(`last words: ${secret}, ${secret.slice(0, 9)}\u001b[31m${secret.slice(9)}`);
    w.host.executed.at(-1)?.end(3);
    await calm();
    expect(told(await w.log(), 'message').map(({ text }) => text)).toContain('the key is **********, sk-not this, and ********** s');
    const everything = JSON.stringify([await w.log(), await w.record(), await w.view(), w.logged]);
    expect(everything).not.toContain(secret);
    expect(everything).not.toContain('live-0');
    expect(w.logged.join('\n')).toContain('last words: **********, **********');
  });

  test('never contains the secret that the agent got, even if the secret is changed while the agent starts', async () => {
    let started: readonly unknown[] = [];
    const secrets = { get MODEL_KEY() { return started.length < 2 ? 'sk-the-old-key' : 'sk-the-new-key'; } };
    const w = await createReady({ agent: { secrets: ['MODEL_KEY'] }, secrets, script: async (turn) => turn.say(`${w.host.executed.at(-1)?.request.env?.['MODEL_KEY']}`) });
    started = w.host.executed;
    w.host.executed.at(-1)?.end(0);
    await calm();
    await w.conversations.send('me', w.id, said('go'));
    await w.rested();
    expect(told(await w.log(), 'message').map(({ text }) => text)).toEqual(['go', '**********']);
  });

  test('contains no secret of its sandbox', async () => {
    const shown = { sandboxKey: '', text: '' };
    const w = await createReady({
      spec: { secrets: ['DB_PASSWORD'], initialEnv: { API_TOKEN: 'token-of-the-spec', AUTH: 'none', URL: 'postgres://app:hunter22@db/shop' } },
      secrets: { DB_PASSWORD: 'a-very-secret-password' },
      script: async (turn) => {
        await turn.say(`a-very-secret-password token-of-the-spec none postgres://app:hunter22@db/shop ${shown.sandboxKey}`);
      },
    });
    shown.sandboxKey = (await w.store.sandboxes.find(w.sandboxId))?.sessionApiKey ?? '';
    await w.conversations.send('me', w.id, said('go'));
    await w.rested();
    expect(told(await w.log(), 'message').map(({ text }) => text)).toContain('********** ********** none ********** **********');
  });
});

test('the last output of a failed sandbox is shown without the secrets of its command and agent', async () => {
  const secrets = { DB_PASSWORD: 'a-very-secret-password', MODEL_KEY: 'the-key-of-the-model' };
  const w = createOne({ spec: { secrets: ['DB_PASSWORD'] }, agent: { secrets: ['MODEL_KEY'] }, secrets });
  await w.sweeper.start();
  const { id } = await w.sandboxes.start('me', { specId: null });
  const statusOf = async () => (await w.sandboxes.get('me', id)).status;
  await until(statusOf, (status) => status === 'RUNNING');
  w.engine.write(id, `${Object.values(secrets).join(' and ')}: refused`);
  w.engine.crash(id, { code: 'process_exited', exitCode: 1, signal: null, program: null });
  await until(statusOf, (status) => status === 'ERROR');
  expect(await w.sandboxes.get('me', id)).toMatchObject({ statusReason: { output: '********** and **********: refused' } });
});

test('the text of git that failed in a sandbox is shown and logged without the secrets of its command and agent', async () => {
  const secrets = { DB_PASSWORD: 'a-very-secret-password', MODEL_KEY: 'the-key-of-the-model' };
  const listChanges: RepositoryCheckouts['listChanges'] = async ({ run }, signal) => {
    const { stderr } = await run([Object.values(secrets).join(' and ')], signal);
    throw new SnapshotRefusal({ code: 'snapshot_failed', exitCode: 128, output: await text(stderr) });
  };
  const w = await createReady(
    { spec: { secrets: ['DB_PASSWORD'] }, agent: { secrets: ['MODEL_KEY'] }, secrets, checkouts: { listChanges } }, { selectedRepository: 'acme/shop' },
  );
  const failure = await failureOf(w.conversations.changes('me', w.id, neverAborts));
  expect(failure).toMatchObject({ context: { reason: { output: 'command not found: ********** and **********\n' } } });
  expect(w.logged.join('\n')).not.toContain(secrets.DB_PASSWORD);
});

test('the text of git that could make no work tree is logged, and not shown', async () => {
  const cause = new Error('git ended with exit code 128: fatal: out of luck');
  const refused = new Failure('provider_failed', { provider: 'memory', reason: explained('no work tree could be made of the repository') }, { cause });
  const w = createOne({ checkouts: { checkOut: () => Promise.reject(refused) } });
  const { conversation: { id } } = await w.conversations.start('me', { ...plain, selectedRepository: 'acme/shop' });
  const record = await until(() => w.store.conversations.find(id), (found) => found?.startStatus === 'ERROR');
  expect(JSON.stringify(record)).not.toContain('out of luck');
  const line = w.logged.find((logged) => logged.includes('a step of a conversation start failed'));
  expect(JSON.parse(line ?? '')).toMatchObject({ level: 'warn', conversation: id, error: { message: expect.stringContaining('out of luck') } });
  await w.close();
});
