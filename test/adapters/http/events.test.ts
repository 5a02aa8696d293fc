import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { items, object, type Json } from '../../support/client.ts';
import { openEventStream } from '../../support/event-stream.ts';
import { chunk, conversations, readyConversation } from './support.ts';
import { coderSpec, createWorld, type World } from './world.ts';

let world: World;
let id: string;
let path: string;
beforeAll(async () => {
  world = await createWorld({ specs: [coderSpec] });
  id = await readyConversation(world, { selected_repository: 'acme/shop', initial_message: { content: [{ type: 'text', text: 'hello' }] } });
  path = `${conversations}/${id}/events`;
  const stream = await openEventStream(`${world.url}${path}/stream`, world.keys.ann);
  await stream.upTo(({ event }) => event === 'turn_ended');
  stream.cut();
});
afterAll(() => world.close());

async function pages(query: string, limit: number): Promise<Json[]> {
  const seen: Json[] = [];
  let more = '';
  do {
    const page = await world.ann('GET', `${query}${query.includes('?') ? '&' : '?'}limit=${limit}${more}`);
    expect(items(page).length).toBeLessThanOrEqual(limit);
    seen.push(...items(page));
    const next = object(page)['next_page_id'];
    more = typeof next === 'string' ? `&page_id=${next}` : '';
  } while (more !== '');
  return seen;
}

const idsOf = (events: readonly Json[]) => events.map((event) => Number(event['id']));
const kindsOf = (events: readonly Json[]) => events.map((event) => event['kind']);

describe('event pages', () => {
  test('contain the events of the start, the turn and the sandbox of a conversation, oldest first', async () => {
    const all = items(await world.ann('GET', path));
    expect(idsOf(all)).toEqual(idsOf(all).toSorted((a, b) => a - b));
    const steps = all.filter(({ kind }) => kind === 'start_step').map(({ data }) => (data as Json)['to']);
    expect(steps).toEqual(['WORKING', 'WAITING_FOR_SANDBOX', 'PREPARING_REPOSITORY', 'LISTING_MICROAGENTS', 'STARTING_AGENT', 'READY']);
    const said = all.filter(({ kind }) => kind === 'message').map(({ actor, data }) => [actor, (data as Json)['role'], (data as Json)['text']]);
    expect(said[0]).toEqual(['user', 'user', 'hello']);
    expect(said[1]?.slice(0, 2)).toEqual(['agent', 'agent']);
    expect(String(said[1]?.[2])).toMatch(/^heard: .*hello$/s);
    expect(kindsOf(all)).toEqual(expect.arrayContaining(['sandbox_moved', 'turn_started', 'message_chunk', 'turn_ended', 'agent_started', 'execution_changed']));
    expect(await pages(path, 3)).toEqual(all);
  });

  test('can be filtered by kind and begin after an event, and wrong parameters are refused', async () => {
    const all = items(await world.ann('GET', path));
    const some = await pages(`${path}?kinds=message&kinds=turn_ended`, 1);
    expect(kindsOf(some)).toEqual(['message', 'message', 'turn_ended']);
    const [first] = some;
    expect(await pages(`${path}?after=${String(first?.['id'])}`, 100)).toEqual(all.filter((event) => Number(event['id']) > Number(first?.['id'])));
    for (const query of ['kinds=nothing', 'after=latest', 'after=-1', 'after=', 'page_id=made-up']) expect((await world.ann('GET', `${path}?${query}`)).status).toBe(422);
  });

  test('accept only a page token of the same log', async () => {
    const next = String(object(await world.ann('GET', `${path}?limit=1`))['next_page_id']);
    const other = await readyConversation(world);
    expect((await world.ann('GET', `${conversations}/${other}/events?page_id=${next}`)).status).toBe(422);
    expect((await world.ann('GET', `/api/v1/events?page_id=${next}`)).status).toBe(422);
  });

  test('of all resources contain only status changes, unless other kinds are requested', async () => {
    const kinds = new Set(kindsOf(await pages('/api/v1/events', 100)));
    expect(kinds).toEqual(new Set(['execution_changed', 'sandbox_moved', 'start_step']));
    expect(new Set(kindsOf(await pages('/api/v1/events?kinds=message', 100)))).toEqual(new Set(['message']));
  });

  test('of one sandbox contain only its events, and are empty for another owner', async () => {
    const moves = (await pages('/api/v1/events?kinds=sandbox_moved', 100)).filter((event) => event['sandbox_id'] !== null);
    const id = String(moves[0]?.['sandbox_id']);
    const own = moves.filter((event) => event['sandbox_id'] === id);
    expect(own.length).toBeGreaterThan(1);
    expect(await pages(`/api/v1/events?sandbox_id__eq=${id}`, 1)).toEqual(own);
    expect(items(await world.client(world.keys.ben)('GET', `/api/v1/events?sandbox_id__eq=${id}`))).toEqual([]);
    expect((await world.ann('GET', '/api/v1/events?sandbox_id__eq=%00')).status).toBe(422);
  });
});

describe('event streams', () => {
  test('send the same events as the pages, with the same ids, and each with one line of data', async () => {
    const all = items(await world.ann('GET', path));
    const last = String(all.at(-1)?.['id']);
    const response = await fetch(`${world.url}${path}/stream`, { headers: { 'X-Session-API-Key': world.keys.ann } });
    expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
    expect(response.headers.get('cache-control')).toBe('no-store');
    expect(response.headers.get('x-accel-buffering')).toBe('no');
    let text = '';
    const decoder = new TextDecoder();
    for await (const bytes of response.body ?? []) {
      text += decoder.decode(bytes, { stream: true });
      if (text.includes(`id: ${last}\n`) && text.endsWith('\n\n')) break;
    }
    const blocks = all.map((event) => `id: ${String(event['id'])}\nevent: ${String(event['kind'])}\ndata: ${JSON.stringify(event)}\n\n`);
    expect(text).toBe(['id: 0\nretry: 1000\n\n', ...blocks].join(''));
  });

  test('do not change texts with line breaks and other control characters', async () => {
    const odd = 'one\ntwo\r\nthree\rfour\u2028five\u0000six: \n\ndata: {}\n\nid: 7\n\n\ud83d\ude00';
    const other = await readyConversation(world);
    await world.store.events.append([chunk(other, odd)]);
    const stream = await openEventStream(`${world.url}${conversations}/${other}/events/stream?kinds=message_chunk`, world.keys.ann);
    const event = await stream.next();
    stream.cut();
    expect(JSON.parse(event?.data ?? '')).toMatchObject({ data: { text: odd } });
  });

  test('continue after the Last-Event-ID, or else after the event in the query', async () => {
    const all = idsOf(items(await world.ann('GET', path)));
    const [third, fourth] = [all[2], all[3]];
    for (const [query, header] of [[`after=${third}`, null], ['', `${third}`], ['after=0', `${third}`], ['after=latest', `${third}`]] as const) {
      const stream = await openEventStream(`${world.url}${path}/stream?${query}`, world.keys.ann, header);
      expect(stream.response.headers.get('last-event-id')).toBe(`${third}`);
      expect((await stream.next())?.id).toBe(`${fourth}`);
      stream.cut();
    }
  });

  test('begin at an event id or at latest, and at nothing else', async () => {
    for (const after of ['', '-1', '1.5', 'Latest', '1000000000000000', '1&after=2']) {
      const { status, body } = await world.ann('GET', `${path}/stream?after=${after}`);
      expect([after, status, body]).toEqual([after, 422, { detail: [expect.objectContaining({ loc: ['query', 'after'], msg: 'must be the id of an event, or latest' })] }]);
    }
  });

  test('of all resources begin with the next event, and return their start in the header Last-Event-ID', async () => {
    const before = await world.store.events.latest();
    const stream = await openEventStream(`${world.url}/api/v1/events/stream`, world.keys.ann);
    const from = Number(stream.response.headers.get('last-event-id'));
    expect(from).toBeGreaterThanOrEqual(before);
    const other = await readyConversation(world);
    const events = await stream.upTo(({ event, data }) => event === 'execution_changed' && data.includes(other));
    stream.cut();
    for (const event of events) expect(Number(event.id)).toBeGreaterThan(from);
    expect(new Set(events.map(({ event }) => event))).toEqual(new Set(['start_step', 'execution_changed', 'sandbox_moved']));
    // A client that is cut off before its first event misses nothing.
    const again = await openEventStream(`${world.url}/api/v1/events/stream`, world.keys.ann, String(from));
    expect((await again.next())?.id).toBe(events[0]?.id);
    again.cut();
  });

  test('end when the conversation is deleted', async () => {
    const other = await readyConversation(world);
    const stream = await openEventStream(`${world.url}${conversations}/${other}/events/stream?kinds=message`, world.keys.ann);
    expect((await world.ann('DELETE', `${conversations}/${other}`)).status).toBe(204);
    expect(await stream.next()).toBeNull();
  });

  test('answer HEAD like GET, without a body', async () => {
    const head = await fetch(`${world.url}${path}/stream`, { method: 'HEAD', headers: { 'X-Session-API-Key': world.keys.ann } });
    expect([head.status, head.headers.get('content-type'), await head.text()]).toEqual([200, 'text/event-stream; charset=utf-8', '']);
  });

  test('are refused without access or with wrong parameters, before anything is sent', async () => {
    const open = (target: string, key: string | null = world.keys.ann, headers: Readonly<Record<string, string>> = {}) => world.client(key)('GET', target, undefined, headers);
    expect(await open(`${conversations}/conv-none/events/stream`)).toMatchObject({ status: 404, body: { code: 'conversation_not_found' } });
    expect(await open(`${path}/stream`, world.keys.ben)).toMatchObject({ status: 404, body: { code: 'conversation_not_found' } });
    expect(await open(path, world.keys.ben)).toMatchObject({ status: 404 });
    expect(await open(`${path}/stream`, null)).toMatchObject({ status: 401 });
    for (const query of ['after=x', 'after=-1', 'after=1.5', 'after=', 'after=9999999999999999', 'kinds=nothing', 'after=1&after=2']) {
      expect(await open(`${path}/stream?${query}`), query).toMatchObject({ status: 422, body: { detail: [{ loc: expect.arrayContaining(['query']) }] } });
    }
    expect(await open(`${path}/stream`, world.keys.ann, { 'Last-Event-ID': 'abc' })).toMatchObject({ status: 422, body: { detail: [{ loc: ['header', 'last-event-id'] }] } });
  });

  test('can be followed with a read-only key, and contain only events of the owner of the key', async () => {
    const stream = await openEventStream(`${world.url}${path}/stream`, world.keys.reader);
    const [first] = items(await world.ann('GET', path));
    expect((await stream.next())?.data).toBe(JSON.stringify(first));
    stream.cut();
    const bens = await openEventStream(`${world.url}/api/v1/events/stream?after=0`, world.keys.ben);
    const made = object(await world.client(world.keys.ben)('POST', conversations));
    expect((await bens.next())?.data).toContain(String(made['id']));
    bens.cut();
  });
});
