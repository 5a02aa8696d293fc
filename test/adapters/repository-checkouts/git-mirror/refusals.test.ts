import type { ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { neverAborts } from '../../../../src/ports/abort-signals.ts';
import { authorization, createScene, failureOf, open, token, noProgress } from './support.ts';

const advertisement = { 'content-type': 'application/x-git-upload-pack-advertisement' };

type Answer = readonly [status: number, headers: Record<string, string>, body?: string];

describe('A checkout from a git host', () => {
  test.each<readonly [string, Answer, string | null, string]>([
    ['401 with a credential', [401, {}], authorization, 'provider_unauthorized'],
    ['401 without a credential', [401, {}], null, 'repository_not_found'],
    ['403 with a credential', [403, {}], authorization, 'repository_forbidden'],
    ['403 without a credential', [403, {}], null, 'repository_not_found'],
    ['404', [404, {}], authorization, 'repository_not_found'],
    ['429', [429, { 'retry-after': '7' }], authorization, 'provider_rate_limited'],
    ['429 without Retry-After', [429, {}], authorization, 'provider_rate_limited'],
    ['503', [503, {}], authorization, 'provider_failed'],
    ['HTML', [200, { 'content-type': 'text/html' }, '<html>'], authorization, 'provider_failed'],
    ['a malformed list of refs', [200, advertisement, 'zzzz'], authorization, 'provider_failed'],
    ['an error packet', [200, advertisement, '0015ERR access denied'], authorization, 'provider_failed'],
    ['a redirect', [302, { location: 'http://127.0.0.1:1/' }], authorization, 'provider_failed'],
  ])('fails with the right code if the host returns %s', async (_, [status, headers, body], sent, code) => {
    const scene = await createScene();
    const answer = (response: ServerResponse): boolean => {
      response.writeHead(status, headers).end(body ?? `who is ${token}?`);
      return true;
    };
    const request = { ...scene.request, remote: { ...scene.request.remote, authorization: sent } };
    const mirror = scene.mirror();
    scene.host.interceptor = (_request, response) => answer(response);
    const first = await failureOf(mirror.checkOut(request, noProgress, neverAborts));
    expect(first.split(':')[0]).toBe(code);
    expect(first).not.toContain(token);
    // The same with git: the host answers the first two requests.
    let asked = 0;
    scene.host.interceptor = (_request, response) => ++asked > 2 && answer(response);
    const before = scene.host.requests.length;
    const later = sent === null ? null : await failureOf(mirror.checkOut(request, noProgress, neverAborts));
    if (later !== null) expect(later.split(':')[0]).toBe(code);
    expect(scene.host.requests.length - before).toBe(sent === null ? 0 : asked);
    scene.host.interceptor = null;
    expect(Object.keys((await open(mirror, scene.request)).files)).toHaveLength(3);
  });

  test.each([null, 'main'])('shows the message of an error packet, without the credential, for branch %s', async (branch) => {
    const scene = await createScene();
    const line = `ERR Access denied to ${token}, ${token.slice(0, 3)}\u001b[31m${token.slice(3)}.\n`;
    scene.host.interceptor = (_request, response) => {
      response.writeHead(200, advertisement).end((line.length + 4).toString(16).padStart(4, '0') + line);
      return true;
    };
    const failure = await failureOf(scene.mirror().checkOut({ ...scene.request, branch }, noProgress, neverAborts));
    expect(failure).toMatch(/^provider_failed: .*Access denied to \*\*\*, \*\*\*\./u);
  });

  test('fails with `provider_failed` if the port is closed', async () => {
    const scene = await createScene();
    const remote = { url: 'http://127.0.0.1:1/acme/shop.git', authorization };
    expect(await failureOf(scene.mirror().checkOut({ ...scene.request, remote }, noProgress, neverAborts))).toMatch(/^provider_failed: /u);
  });

  test('does not follow a redirect, so no other host gets the credential', async () => {
    const scene = await createScene();
    const seen: (string | undefined)[] = [];
    const elsewhere = createServer((request, response) => {
      seen.push(request.headers.authorization);
      response.end();
    });
    elsewhere.listen(0, '127.0.0.1');
    await once(elsewhere, 'listening');
    onTestFinished(() => {
      elsewhere.closeAllConnections();
      elsewhere.close();
    });
    const location = `http://127.0.0.1:${(elsewhere.address() as AddressInfo).port}/acme/shop.git/info/refs?service=git-upload-pack`;
    for (const skipped of [0, 2, 4]) {
      let asked = 0;
      scene.host.interceptor = (_request, response) => {
        asked += 1;
        if (asked <= skipped) return false;
        response.writeHead(307, { location }).end();
        return true;
      };
      expect(await failureOf(scene.mirror().checkOut(scene.request, noProgress, neverAborts))).toMatch(/^provider_failed: /u);
      expect(asked).toBeGreaterThan(skipped);
    }
    expect(seen).toEqual([]);
  });

  test('fails with `provider_timeout` if the host does not respond in time', async () => {
    const scene = await createScene();
    scene.host.interceptor = () => true;
    const listing = scene.mirror({ answerMs: 200 }).checkOut(scene.request, noProgress, neverAborts);
    expect(await failureOf(listing)).toMatch(/^provider_timeout: .*"limitMs":200/u);
    let asked = 0;
    scene.host.interceptor = () => ++asked > 4;
    const fetching = scene.mirror({ timeoutMs: 2000 }).checkOut(scene.request, noProgress, neverAborts);
    expect(await failureOf(fetching)).toMatch(/^provider_timeout: .*"limitMs":2000/u);
  });

  test('works with protocol version 0', async () => {
    const scene = await createScene();
    let asked = 0;
    scene.host.interceptor = async (_request, response) => {
      asked += 1;
      if (asked > 1) return false;
      const answer = await fetch(`${scene.request.remote.url}/info/refs?service=git-upload-pack`, { headers: { authorization } });
      response.writeHead(200, advertisement).end(Buffer.from(await answer.arrayBuffer()));
      return true;
    };
    const tree = await open(scene.mirror(), scene.request);
    expect([tree.branch, Object.keys(tree.files).length]).toEqual(['main', 3]);
    expect(scene.asked().slice(0, 2)).toEqual(['refs', 'refs']);
  });
});

