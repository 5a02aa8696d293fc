import { describe, expect, test } from 'vitest';
import { answerWith, redirect, rubbish } from '../../../doubles/github/faults.ts';
import { refusal } from '../../../doubles/github/request.ts';
import { startGitHubDouble } from '../../../doubles/github/index.ts';
import { failureOf, list } from '../support.ts';
import { createScene, manyFiles, simple } from './support.ts';

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
