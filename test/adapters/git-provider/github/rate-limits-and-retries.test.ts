import { describe, expect, test } from 'vitest';
import { answerWith, graphqlLimit, graphqlSecondaryLimit, primaryLimit, secondaryLimit, type Fault } from '../../../doubles/github/faults.ts';
import { refusal } from '../../../doubles/github/request.ts';
import type { GitProvider } from '../../../../src/ports/git-provider.ts';
import { everything, failureOf, list, secondsOf } from '../support.ts';
import { createScene, manyFiles, simple, simpleListing } from './support.ts';

const firstPage = { after: null, limit: 10 };
const callsByResource: Readonly<Record<string, (provider: GitProvider) => Promise<unknown>>> = {
  search: async (provider) => await provider.searchRepositories?.('shop', firstPage),
  graphql: (provider) => provider.find('acme/shop'),
  core: async (provider) => await provider.listBranches?.('acme/shop', firstPage),
};

describe('A rate limit', () => {
  test.each<readonly [string, Fault, number, number]>([
    ['primary, 403', primaryLimit(1800), 1799, 1801],
    ['primary, 429', primaryLimit(1800, 429), 1799, 1801],
    ['primary, of GraphQL', graphqlLimit(1800), 1799, 1801],
    ['secondary, 403', secondaryLimit(7), 7, 7],
    ['secondary, 429', secondaryLimit(7, 429), 7, 7],
    ['secondary, 403 without a time', secondaryLimit(null), 60, 60],
    ['secondary, of GraphQL', graphqlSecondaryLimit(7), 7, 7],
  ])('is reported with the time to wait, and no request is sent until then: %s', async (_, act, atLeast, atMost) => {
    const scene = await createScene();
    await scene.publish(simple);
    const provider = scene.provider();
    scene.double.faults.plan({ act, times: 1 });
    const seconds = await secondsOf(list(provider));
    expect(seconds).toBeGreaterThanOrEqual(atLeast);
    expect(seconds).toBeLessThanOrEqual(atMost);
    expect(scene.asked()).toHaveLength(1);
    expect(await secondsOf(provider.find('acme/other'))).toBeLessThanOrEqual(atMost);
    expect(await provider.check()).toMatchObject({ ok: false, detail: expect.stringContaining('rate') });
    expect(scene.asked()).toEqual([]);
    scene.clock.advance(atMost * 1000);
    expect(await list(provider)).toEqual(simpleListing);
  });

  test('of searches, of GraphQL or of the REST API refuses only the requests that it counts', async () => {
    const scene = await createScene();
    await scene.publish(simple);
    for (const [resource, call] of Object.entries(callsByResource)) {
      const provider = scene.provider();
      scene.double.faults.plan({ act: primaryLimit(60, 403, resource), times: 1 });
      expect(await secondsOf(call(provider))).toBeGreaterThan(50);
      for (const [name, other] of Object.entries(callsByResource)) {
        if (name === resource) expect(await secondsOf(other(provider))).toBeGreaterThan(50);
        else await other(provider);
      }
    }
  });

  test('ends the listing at once', async () => {
    const scene = await createScene();
    await scene.publish(manyFiles(301));
    const provider = scene.provider({ concurrency: 1 });
    scene.double.faults.plan({ act: secondaryLimit(30), when: ({ body }) => body.includes('history(') });
    expect(await secondsOf(list(provider))).toBe(30);
    expect(scene.asked()).toHaveLength(2);
  });
});

describe('A temporary error of GraphQL', () => {
  test.each([502, 504])('is retried with a smaller query, and fails if it stays: %i', async (status) => {
    const scene = await createScene();
    await scene.publish(simple);
    const act = answerWith(refusal(status, 'Server Error'));
    for (const part of ['defaultBranchRef', 'history(']) {
      const when = ({ body }: { readonly body: string }): boolean => body.includes(part);
      scene.double.faults.plan({ act, times: 1, when });
      expect(await list(scene.provider())).toEqual(simpleListing);
      scene.asked();
      scene.double.faults.plan({ act, when });
      expect(await failureOf(list(scene.provider()))).toMatch(/^provider_failed: /u);
      expect(scene.asked().length).toBeLessThanOrEqual(5);
      scene.double.faults.clear();
    }
  });
});

describe('A permanent error', () => {
  test.each<readonly [string, number, string]>([
    ['a refused credential', 401, 'provider_unauthorized'],
    ['a missing permission', 403, 'provider_unauthorized'],
    ['a legal block', 451, 'provider_failed'],
    ['a server error', 500, 'provider_failed'],
    ['an unknown status', 418, 'provider_failed'],
    ['a refused request', 400, 'provider_failed'],
  ])('is not retried: %s', async (_, status, code) => {
    const scene = await createScene();
    await scene.publish(simple);
    for (const provider of [scene.provider(), scene.anonymous()]) {
      scene.double.faults.plan({ act: answerWith(refusal(status, 'the secret is 42')), times: 1 });
      const failure = await failureOf(list(provider));
      expect(failure).toMatch(new RegExp(`^${code}: `, 'u'));
      expect(failure).not.toContain('42');
      expect(scene.asked()).toHaveLength(1);
    }
  });

  test('is `provider_unauthorized` if GitHub does not know the token', async () => {
    const scene = await createScene();
    await scene.publish(simple);
    const provider = scene.provider({ token: 'ghp_unknown' });
    expect(await failureOf(list(provider))).toMatch(/^provider_unauthorized: /u);
    expect(await failureOf(provider.find('acme/shop'))).toMatch(/^provider_unauthorized: /u);
    expect(await provider.check()).toMatchObject({ ok: false, refusal: 'credential', detail: expect.stringContaining('refused') });
  });

  test('names the URL at which the token is authorised for an organisation with single sign-on', async () => {
    const scene = await createScene();
    await scene.publish(simple);
    const url = 'https://github.com/orgs/acme/sso?request=AZSCKtL4U8yX1H3';
    const headers = { 'x-github-sso': `required; url=${url}` };
    const saml = { type: 'FORBIDDEN', path: ['repository'], extensions: { saml_failure: true }, message: 'Resource protected by organization SAML enforcement.' };
    const body = { data: { repository: null }, errors: [saml] };
    const ofRest = answerWith({ ...refusal(403, 'Resource protected by organization SAML enforcement.'), headers });
    const provider = scene.provider();
    const failureAfter = async (act: Fault, call: () => Promise<unknown> = async () => await provider.find('acme/shop')): Promise<string> => {
      scene.double.faults.plan({ act, times: 1 });
      return await failureOf(call());
    };
    const found = `provider_unauthorized: ${JSON.stringify({ provider: 'github', ssoUrl: url })}`;
    expect(await failureAfter(answerWith({ status: 200, headers, body }))).toBe(found);
    expect(await failureAfter(ofRest, async () => await provider.listBranches?.('acme/shop', firstPage))).toBe(found);
    expect(await failureAfter(answerWith({ status: 200, body }))).toBe('provider_unauthorized: {"provider":"github","ssoUrl":null}');
  });

  test('has the code that fits the type of the GraphQL error', async () => {
    const scene = await createScene();
    await scene.publish(simple);
    const errors: readonly (readonly [object, RegExp])[] = [
      [{ type: 'FORBIDDEN', message: 'Resource protected by organization SAML enforcement' }, /^provider_unauthorized: /u],
      [{ type: 'INSUFFICIENT_SCOPES', message: 'x' }, /^provider_unauthorized: /u],
      [{ type: 'UNPROCESSABLE', message: 'x', path: ['repository', 'name'] }, /^provider_failed: .*refused a query/u],
      [{ type: 'NOT_FOUND', message: 'x', path: ['repository'] }, /^repository_not_found: /u],
    ];
    for (const [error, expected] of errors) {
      const act = answerWith({ status: 200, body: { data: { repository: null }, errors: [error] } });
      scene.double.faults.plan({ act, times: 1 });
      expect(await failureOf(list(scene.provider()))).toMatch(expected);
    }
  });

  test('is `repository_not_found` for a private repository without a token, and for a deleted one', async () => {
    const scene = await createScene();
    await scene.publish(simple, 'acme/shop', 'private');
    expect(await failureOf(list(scene.anonymous()))).toMatch(/^repository_not_found: /u);
    const provider = scene.provider();
    expect(await list(provider)).toEqual(simpleListing);
    scene.double.repositories.remove('acme/shop');
    expect(await failureOf(list(provider))).toMatch(/^repository_not_found: /u);
    expect(await failureOf(provider.listFiles('acme/shop', everything))).toMatch(/^repository_not_found: /u);
  });
});
