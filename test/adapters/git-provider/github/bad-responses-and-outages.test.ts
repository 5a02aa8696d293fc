import { describe, expect, test } from 'vitest';
import { createSystemClock } from '../../../../src/adapters/clock/system-clock.ts';
import { answerWith, cutConnection, redirect, rubbish, stall, stallInBody } from '../../../doubles/github/faults.ts';
import { refusal } from '../../../doubles/github/request.ts';
import { startGitHubDouble } from '../../../doubles/github/index.ts';
import { deadUrl, everything, failureOf, list, recordingCache } from '../support.ts';
import { createScene, manyFiles, simple, simpleListing } from './support.ts';

const oid = '0'.repeat(40);
const branch = (target: unknown): object => ({ data: { repository: { name: 'shop', nameWithOwner: 'acme/shop', defaultBranchRef: { name: 'main', target } } } });

describe('A malformed response from GitHub', () => {
  test.each<readonly [string, unknown]>([
    ['HTML', '<html>'],
    ['an empty body', ''],
    ['null', null],
    ['a list', []],
    ['an object without data', { hello: 'world' }],
    ['an invalid repository name', { data: { repository: { name: '', nameWithOwner: 'x', defaultBranchRef: null } } }],
    ['a commit without an id', branch({})],
    ['an invalid commit id', branch({ oid: '../..' })],
    ['an invalid tree entry', branch({ oid, file: { oid, type: 'tree', object: { entries: [{ nameRaw: '%%%', type: 'blob', mode: 1, oid }] } } })],
  ])('fails with `provider_failed` if GraphQL returns %s', async (_, body) => {
    const scene = await createScene();
    await scene.publish(simple);
    scene.double.faults.plan({ act: rubbish(body) });
    expect(await failureOf(list(scene.provider()))).toMatch(/^provider_failed: .*malformed_answer/u);
  });

  test.each<readonly [string, unknown]>([
    ['HTML', '<html>'],
    ['null', null],
    ['a repository without a name', { full_name: 'acme/shop', default_branch: 'main' }],
    ['an invalid full name', { name: 'shop', full_name: 'a/b/c', default_branch: 'main' }],
  ])('fails with `provider_failed` if REST returns %s', async (_, body) => {
    const scene = await createScene();
    await scene.publish(simple);
    scene.double.faults.plan({ act: rubbish(body) });
    expect(await failureOf(list(scene.anonymous()))).toMatch(/^provider_failed: .*malformed_answer/u);
  });

  test.each<readonly [string, unknown]>([
    ['an empty object', {}],
    ['an invalid date', { data: { repository: { object: { h0: { totalCount: 1, nodes: [{ committedDate: 'soon' }], pageInfo: { hasNextPage: false, endCursor: null } } } } } }],
    ['too few histories', { data: { repository: { object: {} } } }],
    ['no commit', { data: { repository: { object: null } } }],
    ['an empty history', { data: { repository: { object: { h0: { totalCount: 0, nodes: [], pageInfo: { hasNextPage: false, endCursor: null } } } } } }],
    ['a history that does not end', { data: { repository: { object: { h0: { totalCount: 9, nodes: [], pageInfo: { hasNextPage: true, endCursor: null } } } } } }],
  ])('fails with `provider_failed` if the query for histories returns %s', async (_, body) => {
    const scene = await createScene();
    await scene.publish(simple);
    scene.double.faults.plan({ act: rubbish(body), when: (request) => request.body.includes('history(') });
    expect(await failureOf(list(scene.provider()))).toMatch(/^provider_failed: /u);
  });

  test('fails with `provider_failed` if REST returns no commit id for HEAD', async () => {
    const scene = await createScene();
    await scene.publish(simple);
    const provider = scene.provider();
    await list(provider);
    scene.double.faults.plan({ act: rubbish('main') });
    expect(await failureOf(list(provider))).toMatch(/^provider_failed: .*malformed_answer/u);
  });
});

describe('A listing', () => {
  test('fails if a redirect or a page link leads to another origin', async () => {
    const scene = await createScene();
    await scene.publish(manyFiles(1, 102));
    const elsewhere = await startGitHubDouble();
    const locations = [`${elsewhere.url}/repositories/1`, '//127.0.0.1:1/x', 'http://user@127.0.0.1/', 'file:///etc/passwd', 'http://', ''];
    for (const location of locations) {
      scene.double.faults.plan({ act: redirect(location), times: 1 });
      expect(await failureOf(list(scene.anonymous()))).toMatch(/^provider_failed: .*another origin/u);
      expect(scene.asked()).toHaveLength(1);
    }
    const link = `<${elsewhere.url}/repositories/1/commits?page=2>; rel="last"`;
    const act = answerWith({ status: 200, headers: { link }, body: [] });
    scene.double.faults.plan({ act, when: ({ path }) => path.endsWith('/commits') });
    expect(await failureOf(list(scene.anonymous()))).toMatch(/^provider_failed: .*another origin/u);
    expect(elsewhere.requests).toEqual([]);
    await elsewhere.close();
  });

  test('fails if redirects form a circle', async () => {
    const scene = await createScene();
    await scene.publish(simple);
    scene.double.faults.plan({ act: redirect('/repos/acme/shop') });
    expect(await failureOf(list(scene.anonymous()))).toMatch(/^provider_failed: .*circles/u);
    expect(scene.asked()).toHaveLength(4);
  });
});

describe('A request that gets no response', () => {
  test.each([stall, stallInBody])('fails with `provider_timeout` after the time limit: %o', async (act) => {
    const scene = await createScene();
    await scene.publish(simple);
    const short = { clock: createSystemClock(), timeoutMs: 300 };
    for (const provider of [scene.provider(short), scene.anonymous(short)]) {
      scene.double.faults.plan({ act, times: 1 });
      expect(await failureOf(list(provider))).toMatch(/^provider_timeout: .*"limitMs":300/u);
    }
    scene.double.faults.plan({ act, times: 2 });
    const provider = scene.provider({ clock: createSystemClock(), timeoutMs: 300 });
    expect(await failureOf(provider.find('acme/shop'))).toMatch(/^provider_timeout: /u);
    expect(await provider.check()).toMatchObject({ ok: false, detail: expect.stringContaining('300 ms') });
  });

  test('fails when the provider closes, and so does every later request', async () => {
    const scene = await createScene();
    await scene.publish(simple);
    const provider = scene.provider();
    scene.double.faults.plan({ act: stall, times: 1 });
    const running = failureOf(list(provider));
    await expect.poll(() => scene.double.requests.length).toBe(1);
    await provider.close();
    expect(await running).toMatch(/^provider_failed: .*closed/u);
    expect(await failureOf(list(provider))).toMatch(/^provider_failed: .*closed/u);
    expect(await provider.check()).toMatchObject({ ok: false });
  });
});

describe('A listing from a host that fails', () => {
  test('fails with `provider_failed` if the port is closed or the host name is unknown', async () => {
    const scene = await createScene();
    for (const url of [await deadUrl(), 'https://github.invalid']) {
      const provider = scene.provider({ url });
      expect(await failureOf(list(provider))).toMatch(/^provider_failed: .*(?:unreachable|host_unknown)/u);
      expect(await provider.check()).toMatchObject({ ok: false, detail: expect.stringContaining('Check its URL') });
    }
  });

  test('returns the last confirmed state and its time, for `serveStaleForMs`', async () => {
    const scene = await createScene();
    await scene.publish(simple);
    const listingCache = recordingCache();
    const patient = scene.provider({ listingCache, serveStaleForMs: 60_000 });
    await list(patient);
    scene.clock.advance(50_000);
    const confirmedAt = scene.clock.now();
    await list(patient);
    scene.double.faults.plan({ act: cutConnection });
    scene.clock.advance(50_000);
    const stale = await scene.provider({ listingCache, serveStaleForMs: 60_000 }).listFiles('acme/shop', everything);
    expect(stale.files.map(({ path, createdAt }) => [path, createdAt / 1000])).toEqual(simpleListing);
    expect(Math.abs((stale.confirmedAt ?? 0) - confirmedAt)).toBeLessThan(30_000);
    expect(await failureOf(list(scene.provider({ listingCache })))).toMatch(/^provider_failed: /u);
    expect(await failureOf(list(patient, 'acme/unknown'))).toMatch(/^provider_failed: /u);
    expect(await failureOf(patient.listFiles('acme/shop', { directory: () => 'docs', accepts: () => true }))).toMatch(/^provider_failed: /u);
    scene.clock.advance(20_000);
    expect(await failureOf(list(patient))).toMatch(/^provider_failed: /u);
  });

  test.each([401, 403, 404, 429])('returns no stale state if the host refuses with status %i', async (status) => {
    const scene = await createScene();
    await scene.publish(simple);
    const provider = scene.provider({ serveStaleForMs: 60_000 });
    const fresh = await provider.listFiles('acme/shop', everything);
    expect(fresh).not.toHaveProperty('confirmedAt');
    scene.double.faults.plan({ act: answerWith(refusal(status, 'no')) });
    expect(await failureOf(list(provider))).toMatch(/^(?:provider_unauthorized|repository_not_found|provider_rate_limited): /u);
  });
});

describe('check()', () => {
  test('reports the remaining requests in one line, or that the host fails', async () => {
    const scene = await createScene();
    expect(await scene.provider().check()).toEqual({ ok: true, detail: expect.stringMatching(/^127\.0\.0\.1:\d+ answers; 4990 of 5000 requests an hour are left$/u) });
    expect((await scene.anonymous().check()).detail).toContain('without a token');
    scene.double.faults.plan({ act: answerWith(refusal(404, 'Rate limiting is not enabled.')), times: 1 });
    expect(await scene.provider().check()).toMatchObject({ ok: true });
    scene.double.faults.plan({ act: answerWith(refusal(500, 'x')), times: 1 });
    expect(await scene.provider().check()).toMatchObject({ ok: false });
  });
});
