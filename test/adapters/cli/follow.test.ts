import { afterEach, describe, expect, test } from 'vitest';
import { createHttpServer, type HttpServer } from '../../../src/adapters/http/index.ts';
import type { api, EventOptions, SkepClient } from '../../../src/client/index.ts';
import { until } from '../../support/until.ts';
import { chunk, readyConversation } from '../http/support.ts';
import { coderSpec, createWorld } from '../http/world.ts';
import { apiOf, talk } from './support.ts';

const open: { close(): Promise<void> }[] = [];
const followers: AbortController[] = [];
afterEach(async () => {
  for (const follower of followers.splice(0)) follower.abort();
  for (const each of open.splice(0).toReversed()) await each.close();
});

async function started() {
  const world = await createWorld({ specs: [coderSpec] });
  open.push(world);
  const id = await readyConversation(world);
  let server: HttpServer = world.server;
  return {
    world,
    id,
    api: apiOf(world),
    stop: () => server.close(),
    /** Listens again on the same port. */
    start: async () => {
      server = await createHttpServer(world.skep, { port: world.port });
      open.push(server);
    },
  };
}

/** Follows events, and records them and the lost connections. */
function follow(api: SkepClient, options: EventOptions) {
  const leaving = new AbortController();
  followers.push(leaving);
  const seen: api.Event[] = [];
  const lost: string[] = [];
  const done = (async () => {
    const given = { signal: leaving.signal, onLost: (why: Error) => lost.push(why.message), ...options };
    for await (const event of api.events(given)) seen.push(event);
  })();
  done.catch(() => {});
  const texts = () => seen.map((event) => (event.kind === 'message_chunk' ? event.data.text : event.kind));
  return { done, lost, texts, leave: () => leaving.abort() };
}

describe('a followed stream', () => {
  test('continues after restarts of the server, with each event once', async () => {
    const { world, id, api, stop, start } = await started();
    const follower = follow(api, { conversation: id, kinds: ['message_chunk'] });
    let told = 0;
    const tell = async () => await world.store.events.append(Array.from({ length: 50 }, () => chunk(id, String(told++))));
    await tell();
    for (let restarts = 0; restarts < 3; restarts += 1) {
      await until(follower.texts, (texts) => texts.length >= told, 60_000);
      await stop();
      await tell();
      await start();
      await tell();
    }
    await until(follower.texts, (texts) => texts.length >= told, 60_000);
    expect(follower.texts()).toEqual(Array.from({ length: told }, (_, index) => String(index)));
    follower.leave();
    await expect(follower.done).rejects.toMatchObject({ name: 'AbortError' });
  });

  test('of new events continues from its start, even if it has received no event', async () => {
    const { world, id, api, stop, start } = await started();
    let reads = 0;
    Object.defineProperty(world.faults, 'events', { get: () => void (reads += 1) });
    const follower = follow(api, { kinds: ['message_chunk'] });
    // One read finds the start, and one reads the events.
    await until(() => reads, (count) => count >= 2, 60_000);
    await stop();
    await world.store.events.append([chunk(id, 'while it was away')]);
    await until(() => follower.lost.length, (count) => count > 0, 60_000);
    await start();
    expect(await until(follower.texts, (texts) => texts.length > 0, 60_000)).toEqual(['while it was away']);
    expect(follower.lost).toHaveLength(1);
    expect(follower.lost[0]).toContain(world.url);
  });

  test('ends if its conversation was deleted while the server was stopped', async () => {
    const { world, id, api, stop, start } = await started();
    const here = follow(api, { conversation: id });
    await until(here.texts, (texts) => texts.includes('start_step'), 60_000);
    await stop();
    await world.skep.conversations.delete('ann', id);
    await start();
    await here.done;
  });

  test('fails if its key was revoked while the server was stopped', async () => {
    const { world, id, api, stop, start } = await started();
    const follower = follow(api, { conversation: id });
    await until(follower.texts, (texts) => texts.includes('start_step'), 60_000);
    await stop();
    world.auth.revoke(world.keys.ann);
    await start();
    await expect(follower.done).rejects.toMatchObject({ name: 'SkepError', message: expect.stringContaining('API key') });
  });

  test('fails at once if its conversation does not exist or no server answers at first', async () => {
    const { api, stop } = await started();
    await expect(follow(api, { conversation: 'conv-none' }).done).rejects.toMatchObject({ name: 'SkepError' });
    await stop();
    await expect(follow(api, {}).done).rejects.toMatchObject({ name: 'SkepError', message: expect.stringContaining('No Skep server answers') });
  });
});

test('a chat continues after a restart of the server', async () => {
  const { world, id, api, stop, start } = await started();
  const chat = talk(api, id);
  chat.type('one');
  await chat.sees('heard: one');
  await stop();
  await start();
  await until(() => world.connections.size, (size) => size > 0, 60_000);
  chat.type('two');
  chat.end();
  expect(await chat.done).toBe(0);
  expect(chat.shown().match(/heard: one/g)).toHaveLength(1);
  expect(chat.shown()).toContain('heard: two');
});
