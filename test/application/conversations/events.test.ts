import { describe, expect, test } from 'vitest';
import type { Event } from '../../../src/domain/event.ts';
import { neverAborts } from '../../../src/ports/abort-signals.ts';
import { createReady, failureOf, gate } from './support.ts';
import { calm, createOne, plain, said, until } from './world.ts';

/** Reads a stream into a list, in the background. */
function collect(batches: AsyncIterable<readonly Event[]>) {
  const events: Event[] = [];
  let ended: 'no' | 'yes' | 'failed' = 'no';
  let largest = 0;
  let opened = false;
  const done = (async () => {
    try {
      for await (const batch of batches) {
        opened = true;
        largest = Math.max(largest, batch.length);
        events.push(...batch);
      }
      ended = 'yes';
    } catch {
      ended = 'failed';
    }
  })();
  return { events, done, ended: () => ended, largest: () => largest, opened: () => opened };
}

describe('event pages', () => {
  test('contain each event once, in order, with the events of the sandbox', async () => {
    const w = await createReady();
    await w.conversations.send('me', w.id, said('one'));
    await w.rested();
    const all = await w.store.events.read({ ownerId: 'me', conversationId: w.id, sandboxId: w.sandboxId }, 0, 1000);
    expect(all.some(({ kind }) => kind === 'sandbox_moved')).toBe(true);
    const seen: Event[] = [];
    for (let after: number | null = 0; after !== null; ) {
      const page = await w.events.page('me', { conversationId: w.id }, after, 3);
      expect(page.items.length).toBeLessThanOrEqual(3);
      seen.push(...page.items);
      after = page.next;
    }
    expect(seen).toEqual(all);
    const messages = await w.events.page('me', { conversationId: w.id, kinds: ['message'] }, 0, 100);
    expect(messages.items.map(({ kind }) => kind)).toEqual(['message', 'message']);
    expect((await w.events.page('you', {}, 0, 100)).items).toEqual([]);
    expect(await failureOf(w.events.page('you', { conversationId: w.id }, 0, 100))).toMatchObject({ code: 'conversation_not_found' });
  });

  test('do not contain events that are older than the configured time', async () => {
    const w = createOne({ keepForMs: 1000 });
    const { conversation: { id } } = await w.conversations.start('me', plain);
    await until(() => w.store.conversations.find(id), (found) => found?.startStatus === 'READY');
    await w.events.purge();
    expect((await w.events.page('me', {}, 0, 100)).items.length).toBeGreaterThan(3);
    w.clock.advance(1001);
    await w.events.purge();
    expect((await w.events.page('me', {}, 0, 100)).items).toEqual([]);
  });
});

describe('the event stream', () => {
  test('returns past events and then new ones, each once, until the conversation is deleted', async () => {
    const w = await createReady({
      script: async (turn) => {
        for (let n = 0; n < 300; n += 1) await turn.tool({ toolCallId: `c${n}`, status: 'completed' });
      },
    });
    const whole = collect(w.events.follow('me', { conversationId: w.id }, 0, neverAborts));
    const fromNow = collect(w.events.follow('me', { conversationId: w.id, kinds: ['tool_call'] }, 'latest', neverAborts));
    const stranger = collect(w.events.follow('you', { conversationId: w.id }, 0, neverAborts));
    await until(() => whole.events.length > 0 && fromNow.opened());
    expect(stranger.ended()).toBe('failed');
    await w.conversations.send('me', w.id, said('one'));
    await w.rested();
    await w.conversations.delete('me', w.id);
    await Promise.all([whole.done, fromNow.done]);
    expect([whole.ended(), fromNow.ended()]).toEqual(['yes', 'yes']);
    expect(whole.largest()).toBeLessThanOrEqual(100);
    const log = await w.store.events.read({ ownerId: 'me', conversationId: w.id, sandboxId: w.sandboxId }, 0, 1000);
    const end = log.findIndex(({ kind }) => kind === 'conversation_deleted');
    expect(whole.events.slice(0, end + 1)).toEqual(log.slice(0, end + 1));
    expect(fromNow.events).toEqual(log.filter(({ kind }) => kind === 'tool_call'));
    expect(fromNow.events).toHaveLength(300);
    await w.close();
    expect(w.clock.pending).toBe(0);
  });

  test('continues after a disconnect at any point, and neither loses nor repeats an event', async () => {
    const w = await createReady({
      script: async (turn) => {
        for (let n = 0; n < 200; n += 1) {
          await turn.tool({ toolCallId: `c${n}`, status: 'completed' });
          if (n % 10 === 0) await new Promise((resolve) => setImmediate(resolve));
        }
      },
    });
    await w.conversations.send('me', w.id, said('one'));
    const seen: number[] = [];
    for (let cut = 0; ; cut += 1) {
      const leave = new AbortController();
      const from = seen.at(-1) ?? 0;
      const reader = collect(w.events.follow('me', { conversationId: w.id }, from, leave.signal));
      for (let n = 0; n < cut % 7; n += 1) await new Promise((resolve) => setImmediate(resolve));
      leave.abort();
      await reader.done;
      seen.push(...reader.events.map(({ sequence }) => sequence));
      if (reader.events.length === 0 && cut > 50 && (await w.record()).turn === null) break;
    }
    const log = await w.store.events.read({ ownerId: 'me', conversationId: w.id, sandboxId: w.sandboxId }, 0, 1000);
    expect(seen).toEqual(log.map(({ sequence }) => sequence));
  });

  test('reads the log only for its own events, and every 5 seconds for other processes', async () => {
    let reads = 0;
    const w = await createReady({
      store: (store) => ({ ...store, events: { ...store.events, read: (filter, after, limit) => {
        if (filter.conversationId === 'conv-quiet') reads += 1;
        return store.events.read(filter, after, limit);
      } } }),
    });
    const quiet = { ...(await w.record()), id: 'conv-quiet', sandboxId: 'sb-quiet', version: 1 };
    await w.store.conversations.insert(quiet);
    const reader = collect(w.events.follow('me', { conversationId: quiet.id }, 0, neverAborts));
    await until(() => reads === 1);
    await w.conversations.send('me', w.id, said('one'));
    await w.rested();
    await calm();
    expect(reads).toBe(1);
    w.clock.advance(5000);
    await until(() => reads === 2);
    w.events.close();
    await reader.done;
    expect(reader.ended()).toBe('yes');
  });

  test('returns an event that is written during a read without waiting for the interval', async () => {
    let interfere = true;
    const w = await createReady({
      store: (store) => ({ ...store, events: { ...store.events, read: async (filter, after, limit) => {
        const events = await store.events.read(filter, after, limit);
        if (filter.kinds?.includes('plan') === true && interfere) {
          interfere = false;
          await store.events.append([{ kind: 'plan', data: { entries: [] }, at: 0, ownerId: 'me', conversationId: filter.conversationId ?? null, sandboxId: null, actor: 'agent', userId: null, reason: null }]);
        }
        return events;
      } } }),
    });
    const reader = collect(w.events.follow('me', { conversationId: w.id, kinds: ['plan'] }, 0, neverAborts));
    await until(() => reader.events.length === 1);
    w.events.close();
    await reader.done;
  });

  test('does not delay a turn if its reader is slow', async () => {
    const held = gate();
    const w = await createReady({ script: async (turn) => { for (let n = 0; n < 500; n += 1) await turn.tool({ toolCallId: `c${n}`, status: 'completed' }); } });
    const slow = (async () => {
      let count = 0;
      for await (const batch of w.events.follow('me', { conversationId: w.id, kinds: ['tool_call'] }, 0, neverAborts)) {
        count += batch.length;
        await held.opened;
      }
      return count;
    })();
    await w.conversations.send('me', w.id, said('one'));
    await w.rested();
    held.open();
    await w.conversations.delete('me', w.id);
    expect(await slow).toBe(500);
  });
});
