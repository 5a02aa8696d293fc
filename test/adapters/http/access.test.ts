import type { IncomingMessage } from 'node:http';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { createSealedTokens } from '../../../src/adapters/http/sealed-tokens.ts';
import { object } from '../../support/client.ts';
import { openEventStream } from '../../support/event-stream.ts';
import { until } from '../../support/until.ts';
import { startWorld } from './world.ts';

const search = '/api/v1/sandboxes/search';
const stream = '/api/v1/events/stream';

describe('a credential', () => {
  test('is accepted in X-Session-API-Key or as a bearer token, and identifies the caller', async () => {
    const world = await startWorld();
    const none = world.client(null);
    expect(await none('GET', '/api/v1/me', undefined, { Authorization: `Bearer ${world.keys.ben}` })).toMatchObject({
      status: 200, body: { user_id: 'ben', key_name: 'ben-ci', access: 'full' },
    });
    expect(await world.client(world.keys.reader)('GET', '/api/v1/me')).toMatchObject({
      status: 200, body: { user_id: 'ann', key_name: 'ann-dashboard', access: 'read' },
    });
    for (const authorization of ['Bearer', 'Bearer wrong', `Basic ${world.keys.ben}`, world.keys.ben]) {
      const refused = await none('GET', '/api/v1/me', undefined, { Authorization: authorization });
      expect(refused).toMatchObject({ status: 401, body: { detail: expect.stringMatching(/X-Session-API-Key.*Authorization: Bearer/) } });
      expect(refused.headers.get('www-authenticate')).toBe('ApiKey, Bearer');
    }
  });

  test('is read from the bearer token if the header of the key is blank', async () => {
    const world = await startWorld();
    const headers = { 'X-Session-API-Key': ' ', Authorization: `Bearer ${world.keys.ben}` };
    expect(await world.client(null)('GET', '/api/v1/me', undefined, headers)).toMatchObject({ status: 200, body: { user_id: 'ben' } });
  });

  test('is read where the embedding application defines it, for example from a cookie', async () => {
    const world = await startWorld({ server: { credential: ({ headers }) => /key=(\S+)/.exec(headers.cookie ?? '')?.[1] ?? null } });
    const none = world.client(null);
    expect(await none('GET', '/api/v1/me', undefined, { Cookie: `key=${world.keys.ben}` })).toMatchObject({ body: { user_id: 'ben' } });
    expect(await world.ann('GET', '/api/v1/me')).toMatchObject({ status: 401 });
  });
});

describe('a key that is limited to repositories', () => {
  test('lists and uses only these repositories, and others are not found', async () => {
    const world = await startWorld();
    const [limited, other] = [world.client(world.keys.limited), world.client(world.auth.issue({ userId: 'ann', keyName: 'x', access: 'full', repositories: ['acme/*'] }))];
    const listing = '/api/user/repository/acme/shop/microagents';
    expect(await world.ann('GET', listing)).toMatchObject({ status: 200 });
    expect(await other('GET', listing)).toMatchObject({ status: 200 });
    const content = `${listing}/content?file_path=.skep/microagents/deploy/aws.md`;
    expect(await other('GET', content)).toMatchObject({ status: 200 });
    expect(await world.client(world.keys.reader)('GET', content)).toMatchObject({ status: 200 });
    expect(await limited('GET', content)).toMatchObject({ status: 404, body: { code: 'repository_not_found' } });
    const conversations = '/api/v1/app-conversations';
    const hidden = await limited('GET', listing);
    expect(hidden).toMatchObject({ status: 404, body: { code: 'repository_not_found' } });
    for (const name of ['acme/shop', 'git.example.org/acme/shop']) {
      expect(await limited('POST', conversations, { selected_repository: name })).toMatchObject({ status: 404, body: { code: 'repository_not_found' } });
    }
    expect((await world.skep.conversations.search('ann', {}, 'CREATED_AT', { after: null, limit: 9 })).items).toEqual([]);
    expect(await other('POST', conversations, { selected_repository: 'acme/shop' })).toMatchObject({ status: 201 });
    expect(await limited('GET', '/api/v1/me')).toMatchObject({ body: { repositories: ['other/*'] } });
  });
});

describe("an administrator's key", () => {
  test('reads and deletes resources of all owners, and creates its own', async () => {
    const world = await startWorld();
    const [admin, ben] = [world.client(world.keys.admin), world.client(world.keys.ben)];
    const { id } = object(await world.ann('POST', '/api/v1/sandboxes', {}));
    const path = `/api/v1/sandboxes/${String(id)}`;
    const { id: conversation } = object(await world.ann('POST', '/api/v1/app-conversations', {}));
    const conversationPath = `/api/v1/app-conversations/${String(conversation)}`;
    for (const each of [path, conversationPath]) {
      expect(await ben('GET', each)).toMatchObject({ status: 404 });
      expect(await admin('GET', each)).toMatchObject({ status: 200, body: { created_by_user_id: 'ann' } });
    }
    const detail = [{ loc: ['body', 'sandbox_id'], msg: expect.stringContaining('must be a sandbox of your own user'), type: 'sandbox_of_other_user' }];
    expect(await admin('POST', '/api/v1/app-conversations', { sandbox_id: id })).toMatchObject({ status: 422, body: { detail } });
    expect(await ben('POST', '/api/v1/app-conversations', { sandbox_id: id })).toMatchObject({ status: 404, body: { code: 'sandbox_not_found' } });
    const { id: own } = object(await admin('POST', '/api/v1/sandboxes', {}));
    const found = object(await admin('GET', search))['items'] as { id: string; created_by_user_id: string }[];
    expect(found.map(({ id: each, created_by_user_id: user }) => [each, user])).toEqual(
      expect.arrayContaining([[own, 'root'], [id, 'ann']]),
    );
    const events = object(await admin('GET', '/api/v1/events'))['items'] as unknown[];
    expect(JSON.stringify(events)).toContain(String(conversation));
    expect(await admin('GET', `${conversationPath}/events`)).toMatchObject({ status: 200 });
    expect((await world.ann('GET', `/api/v1/sandboxes/${String(own)}`)).status).toBe(404);
    expect(await admin('DELETE', conversationPath)).toMatchObject({ status: 204 });
    expect(await admin('DELETE', path)).toMatchObject({ status: 204 });
    expect(await world.ann('GET', path)).toMatchObject({ status: 404 });
  });
});

describe('a stream', () => {
  test.each(['revoked', 'expired'])('ends after its key is %s', async (how) => {
    const world = await startWorld();
    const key = world.auth.issue({ userId: 'ann', keyName: 'short', access: 'full' }, how === 'expired' ? 3000 : Infinity);
    const open = await openEventStream(`${world.url}${stream}`, key);
    if (how === 'revoked') world.auth.revoke(key);
    expect(await open.next()).toBeNull();
    await expect(openEventStream(`${world.url}${stream}`, key)).rejects.toThrow('401');
  });

  test('can be opened with a ticket in the URL, which works for streams only and does not reveal the key', async () => {
    const world = await startWorld();
    const answer = await world.client(world.keys.reader)('GET', '/api/v1/events/ticket');
    const { ticket, expires_at: expiresAt } = object(answer);
    expect(Date.parse(String(expiresAt)) - Date.now()).toBeLessThanOrEqual(60_000);
    expect(String(ticket)).not.toContain(world.keys.reader);
    const open = await fetch(`${world.url}${stream}?ticket=${String(ticket)}`);
    expect(open.status).toBe(200);
    await open.body?.cancel();
    // The secret of the deployment, for example from a backup, is not enough to read the key in the ticket.
    expect(createSealedTokens(world.skep.secret, z.unknown()).decode(String(ticket))).toBeNull();
    // The ticket works for streams only, and cannot be forged.
    expect((await fetch(`${world.url}${search}?ticket=${String(ticket)}`)).status).toBe(401);
    expect((await fetch(`${world.url}/api/v1/events/ticket?ticket=${String(ticket)}`)).status).toBe(401);
    for (const madeUp of ['x', `${String(ticket).slice(0, -1)}${String(ticket).endsWith('A') ? 'B' : 'A'}`, world.keys.ann]) {
      expect((await fetch(`${world.url}${stream}?ticket=${madeUp}`)).status).toBe(401);
    }
    world.auth.revoke(world.keys.reader);
    expect((await fetch(`${world.url}${stream}?ticket=${String(ticket)}`)).status).toBe(401);
    expect(JSON.stringify(world.lines)).not.toContain(String(ticket));
  });

  test('counts against the stream limit of its key until it ends', async () => {
    const world = await startWorld({ server: { streamsPerKey: 2 } });
    const [first] = [await openEventStream(`${world.url}${stream}`, world.keys.ann), await openEventStream(`${world.url}${stream}`, world.keys.ann)];
    const refused = await world.ann('GET', stream);
    expect(refused).toMatchObject({ status: 429, body: { code: 'rate_limited', limit: 'streams_per_key' } });
    expect(refused.headers.get('retry-after')).toBe('10');
    await openEventStream(`${world.url}${stream}`, world.keys.ben);
    first.cut();
    await expect.poll(async () => (await fetch(`${world.url}${stream}`, { headers: { 'X-Session-API-Key': world.keys.ann } })).status).toBe(200);
  });

  test('does not count against the limit if its client disconnects before it is opened', async () => {
    const asked: unknown[] = [];
    const credential = ({ url, headers: { 'x-session-api-key': key } }: IncomingMessage): string => (asked.push(url), String(key));
    const world = await startWorld({ server: { streamsPerKey: 1, failedLoginsPerMinute: 1, credential } });
    await world.client('wrong')('GET', search);
    // This address has sent too many wrong keys, so a key that it has not used before is checked after a delay.
    const leaving = new AbortController();
    const left = fetch(`${world.url}${stream}`, { headers: { 'X-Session-API-Key': world.keys.ann }, signal: leaving.signal });
    await until(() => asked.includes(stream), Boolean);
    leaving.abort();
    await expect(left).rejects.toThrow();
    await until(() => world.lines.some(({ route, aborted }) => route === stream && aborted === true), Boolean);
    // This request is delayed, too, so the request of the client that left is checked first.
    await world.ann('GET', search);
    const open = await openEventStream(`${world.url}${stream}`, world.keys.ann);
    open.cut();
    expect(world.lines.filter(({ level }) => level === 'error')).toEqual([]);
  });
});

describe('pages of other origins', () => {
  const origin = 'https://app.example.com';
  const ask = { 'Access-Control-Request-Method': 'POST', 'Access-Control-Request-Headers': 'x-session-api-key' };

  test('can call the API if their origin is configured', async () => {
    const world = await startWorld({ server: { corsOrigins: [origin] } });
    const preflight = await fetch(`${world.url}/api/v1/sandboxes`, { method: 'OPTIONS', headers: { Origin: origin, ...ask } });
    expect([preflight.status, preflight.headers.get('access-control-allow-origin')]).toEqual([204, origin]);
    expect(preflight.headers.get('access-control-allow-headers')).toContain('X-Session-API-Key');
    const answer = await world.ann('GET', search, undefined, { Origin: origin });
    expect([answer.status, answer.headers.get('access-control-allow-origin'), answer.headers.get('vary')]).toEqual([200, origin, 'Origin']);
    const refused = await world.client(null)('GET', search, undefined, { Origin: origin });
    expect([refused.status, refused.headers.get('access-control-allow-origin')]).toEqual([401, origin]);
    const other = await world.ann('GET', search, undefined, { Origin: 'https://evil.example.com' });
    expect([other.status, other.headers.get('access-control-allow-origin'), other.headers.get('vary')]).toEqual([200, null, 'Origin']);
  });

  test('cannot call the API by default', async () => {
    const world = await startWorld();
    const preflight = await fetch(`${world.url}/api/v1/sandboxes`, { method: 'OPTIONS', headers: { Origin: origin, ...ask } });
    expect([preflight.status, preflight.headers.get('access-control-allow-origin')]).toEqual([401, null]);
  });
});

describe('the address of a client', () => {
  test.each([
    [[], '127.0.0.1'],
    [['127.0.0.0/8'], '203.0.113.7'],
    [['10.0.0.1'], '127.0.0.1'],
  ])('with the trusted proxies %j is %s', async (trustProxy, client) => {
    const world = await startWorld({ server: { trustProxy } });
    await world.client('wrong')('GET', search, undefined, { 'X-Forwarded-For': '198.51.100.1, 203.0.113.7' });
    expect(world.lines.findLast(({ message }) => message === 'request')).toMatchObject({ status: 401, client });
  });
});
