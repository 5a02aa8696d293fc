import { describe, expect, test } from 'vitest';
import type { NewPullRequest } from '../../../../src/ports/git-provider.ts';
import { doubleToken } from '../../../doubles/github/index.ts';
import { answerWith, cutConnection, redirect, rubbish, secondaryLimit, type Fault } from '../../../doubles/github/faults.ts';
import { failureOf, pullRequestOfWork, start } from '../support.ts';
import { createScene, type Scene } from './support.ts';

const commits = [{ id: 'first', at: start, files: [['a', '1'] as const] }, { id: 'second', at: start + 10, files: [['a', '2'] as const] }];

async function createShop(): Promise<{ scene: Scene; open: (request?: Partial<NewPullRequest>) => Promise<unknown> }> {
  const scene = await createScene();
  await scene.publish({ commits, branches: { main: 'first', next: 'first', work: 'second', done: 'first' } });
  const provider = scene.provider();
  return { scene, open: async (request) => await provider.openPullRequest?.('acme/shop', { ...pullRequestOfWork, ...request }) };
}

const refused = (branch: string, code: string): string =>
  `pull_request_refused: {"provider":"github","repository":"acme/shop","branch":"${branch}","reason":{"code":"${code}"}}`;
const head = '/repos/acme/shop/pulls';

describe('A pull request', () => {
  test('takes three requests to open or update', async () => {
    const { scene, open } = await createShop();
    await open();
    expect(scene.asked()).toEqual(['POST /graphql', `GET ${head}`, `POST ${head}`]);
    await open({ base: 'next' });
    expect(scene.asked()).toEqual(['POST /graphql', `GET ${head}`, `PATCH ${head}/1`]);
  });

  test('is updated if somebody else opens it at the same time', async () => {
    const { scene, open } = await createShop();
    const { id = 0 } = scene.double.repositories.find('acme/shop')?.repository ?? {};
    const openOther: Fault = (response, request) => {
      scene.double.pullRequests.add(id, { title: 'Of another', body: null, head: 'work', base: 'main', draft: false });
      answerWith({ status: 200, body: [] })(response, request);
    };
    scene.double.faults.plan({ act: openOther, times: 1, when: ({ method, path }) => method === 'GET' && path === head });
    expect(await open()).toMatchObject({ number: 1 });
    expect(scene.asked()).toEqual(['POST /graphql', `GET ${head}`, `POST ${head}`, `GET ${head}`, `PATCH ${head}/1`]);
    expect(scene.double.pullRequests.of(id)).toMatchObject([{ title: 'Sell coffee' }]);
  });

  test('is found under the new owner after the repository was renamed', async () => {
    const { scene, open } = await createShop();
    expect(await open()).toMatchObject({ number: 1 });
    scene.double.repositories.rename('acme/shop', 'emca/store');
    expect(await open({ title: 'Sell tea' })).toMatchObject({ number: 1 });
  });

  test('fails with `pull_request_refused` and the reason if GitHub refuses it', async () => {
    const { scene, open } = await createShop();
    expect(await failureOf(open({ branch: 'done' }))).toBe(refused('done', 'nothing_to_merge'));
    scene.double.pullRequests.drafts = false;
    expect(await failureOf(open({ draft: true }))).toBe(refused('work', 'drafts_unsupported'));
    scene.double.faults.plan({ act: answerWith({ status: 404, body: { message: 'Not Found' } }), times: 1, when: ({ method, path }) => method === 'POST' && path === head });
    expect(await failureOf(open())).toBe(refused('work', 'pull_request_forbidden'));
  });

  test('fails with `provider_unauthorized` without a token', async () => {
    const scene = await createScene();
    await scene.publish({ commits, branches: { main: 'first', work: 'second' } });
    const opened = scene.anonymous().openPullRequest?.('acme/shop', pullRequestOfWork);
    expect(await failureOf(opened ?? Promise.resolve())).toBe('provider_unauthorized: {"provider":"github"}');
  });

  test.each<[string, Fault, RegExp]>([
    ['a base that was removed', answerWith({ status: 422, body: { message: 'Validation Failed', errors: [{ field: 'base', code: 'invalid' }] } }), /^pull_request_refused: .*"code":"host_refused","message":"Validation Failed: base invalid"/u],
    ['a rule of the host', answerWith({ status: 422, body: { message: 'Validation Failed', errors: [{ code: 'custom', message: `No ${doubleToken}\nhere` }] } }), /"host_refused","message":"Validation Failed: No \*\*\* here"/u],
    ['a refusal without JSON', answerWith({ status: 422, body: 'no' }), /"host_refused","message":""/u],
    ['a malformed response', rubbish({ number: '1' }), /malformed_answer/u],
    ['a `javascript:` URL', rubbish({ number: 1, html_url: 'javascript:alert(1)', head: { ref: 'work', repo: null }, base: { ref: 'main' } }), /malformed_answer/u],
    ['a rate limit', secondaryLimit(7), /^provider_rate_limited: .*"retryAfterSeconds":7/u],
    ['a host that is down', cutConnection, /connection_lost/u],
    ['a redirect to another host', redirect('https://elsewhere.example/'), /unexpected_status","status":301/u],
  ])('fails on %s', async (_, act, failure) => {
    const { scene, open } = await createShop();
    scene.double.faults.plan({ act, when: ({ method, path }) => method === 'POST' && path === head });
    expect(await failureOf(open())).toMatch(failure);
  });
});
