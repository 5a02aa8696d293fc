import { describe, expect, test, vi } from 'vitest';
import { createSystemClock } from '../../../../src/adapters/clock/system-clock.ts';
import { createGitHubProvider } from '../../../../src/adapters/git-provider/github/index.ts';
import { doubleToken, startGitHubDouble } from '../../../doubles/github/index.ts';
import { answerWith, cutBody, cutConnection, primaryLimit, redirect, rubbish, type Fault } from '../../../doubles/github/faults.ts';
import { refusal } from '../../../doubles/github/request.ts';
import { failureOf, list, recordingCache } from '../support.ts';
import { createScene, simple, simpleListing } from './support.ts';

const mishaps: readonly (readonly [string, Fault])[] = [
  ['a refusal', answerWith(refusal(401, `bad token ${doubleToken}`))],
  ['a missing permission', answerWith(refusal(403, doubleToken))],
  ['a server error', answerWith(refusal(500, doubleToken))],
  ['a GraphQL error', rubbish({ data: null, errors: [{ type: 'X', message: doubleToken }] })],
  ['a malformed response', rubbish(doubleToken)],
  ['a rate limit', primaryLimit(100)],
  ['a cut connection', cutConnection],
  ['a cut body', cutBody],
  ['a redirect', redirect(`http://127.0.0.1:1/${doubleToken}`)],
  ['a deprecation header', answerWith({ status: 500, headers: { deprecation: 'true', sunset: 'soon' }, body: {} })],
];

describe('The token', () => {
  test.each(mishaps)('appears only in the header of a request, also after %s', async (_, act) => {
    const written = vi.spyOn(process.stdout, 'write');
    const warned = vi.spyOn(process.stderr, 'write');
    const consoles = (['log', 'warn', 'error', 'info', 'debug'] as const).map((method) => vi.spyOn(console, method));
    const scene = await createScene();
    await scene.publish(simple);
    const listingCache = recordingCache();
    const provider = scene.provider({ listingCache });
    await list(provider);
    scene.double.faults.plan({ act });
    await failureOf(list(provider));
    await failureOf(list(scene.provider({ listingCache }), 'acme/other'));
    const { detail } = await scene.provider({ listingCache }).check();
    expect(detail).not.toContain(doubleToken);
    for (const spy of [written, warned, ...consoles]) {
      expect(JSON.stringify(spy.mock.calls)).not.toContain(doubleToken);
      spy.mockRestore();
    }
    for (const { path, query, body } of scene.double.requests) expect(`${path} ${query.toString()} ${body}`).not.toContain(doubleToken);
    expect(listingCache.seen.length).toBeGreaterThan(0);
    expect(listingCache.seen.join('\n')).not.toContain(doubleToken);
  });

  test('is not shown or sent if no header can hold it', async () => {
    const scene = await createScene();
    await scene.publish(simple);
    expect(await failureOf(list(scene.provider({ token: 'ghp_with\nline feed' })))).toMatch(/^provider_(?:failed|unauthorized): /u);
    expect(scene.asked()).toEqual([]);
  });
});

describe('A cached listing', () => {
  test('is not shared with another token, another host or a provider without a token', async () => {
    const scene = await createScene();
    await scene.publish(simple);
    scene.double.access.tokens.add('ghp_second');
    const listingCache = recordingCache();
    const elsewhere = await startGitHubDouble();
    const repository = scene.double.repositories.find('acme/shop')?.repository;
    elsewhere.repositories.put('acme/shop', repository?.gitDir ?? '');
    await list(scene.provider({ listingCache }));
    scene.asked();
    expect(await list(scene.provider({ listingCache, token: 'ghp_second' }))).toEqual(simpleListing);
    expect(scene.asked()).toHaveLength(2);
    expect(await list(scene.anonymous({ listingCache }))).toEqual(simpleListing);
    expect(scene.asked()[0]).toBe('GET /repos/acme/shop');
    expect(await list(scene.provider({ listingCache, url: elsewhere.url }))).toEqual(simpleListing);
    expect(elsewhere.requests).toHaveLength(2);
    await elsewhere.close();
  });
});

test('a token is not sent over plain HTTP to another machine, unless `httpHosts` names it', () => {
  const url = 'http://git.internal:8080/api/v3';
  expect(() => createGitHubProvider({ url, clock: createSystemClock(), token: doubleToken })).toThrow(/read on the way to git\.internal:8080/u);
  for (const options of [{ token: doubleToken, httpHosts: ['git.internal'] }, {}]) {
    expect(() => createGitHubProvider({ url, clock: createSystemClock(), ...options })).not.toThrow();
  }
});

test('a token is refused together with an App', () => {
  const app = { appId: 42, privateKey: 'key', installationId: 7 };
  expect(() => createGitHubProvider({ token: doubleToken, app, clock: createSystemClock() })).toThrow(/one of token and app/u);
});
