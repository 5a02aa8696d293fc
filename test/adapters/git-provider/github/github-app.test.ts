import { generateKeyPairSync } from 'node:crypto';
import { describe, expect, test, vi } from 'vitest';
import { agents, everything, failureOf, list, start } from '../support.ts';
import { createScene, simple, simpleListing } from './support.ts';

function makeKey(): string {
  return generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ type: 'pkcs8', format: 'pem' });
}

const tokenRequest = 'POST /app/installations/7/access_tokens';

describe('A GitHub App installation', () => {
  test('requests one token and lists with it, also on an Enterprise Server', async () => {
    for (const prefix of ['', '/api/v3'] as const) {
      const scene = await createScene({ prefix });
      const privateKey = makeKey();
      scene.double.access.tokens.clear();
      scene.double.access.app = { appId: '42', installationId: 7, key: privateKey };
      await scene.publish(simple, 'acme/shop', 'private');
      const provider = scene.anonymous({ app: { appId: 42, privateKey, installationId: 7 } });
      expect(await Promise.all([list(provider), list(provider)])).toEqual([simpleListing, simpleListing]);
      expect(scene.asked()).toEqual([tokenRequest, 'POST /graphql', 'POST /graphql 1 histories']);
      await scene.publish({ commits: [{ id: 'b', at: start + 1, files: [[`${agents}/b.md`, '1']] }] });
      expect(await list(provider)).toEqual([[`${agents}/b.md`, start + 1]]);
      expect(scene.asked()).not.toContain(tokenRequest);
      expect(await provider.check()).toMatchObject({ ok: true });
    }
  });

  test('replaces a token that the host refuses, at most once a minute, unless the clock was set back', async () => {
    const scene = await createScene();
    const privateKey = makeKey();
    const app = { appId: '42', installationId: 7, key: privateKey };
    scene.double.access.app = app;
    await scene.publish(simple, 'acme/shop', 'private');
    const provider = scene.anonymous({ app: { appId: 42, privateKey, installationId: 7 } });
    expect(await provider.check()).toMatchObject({ ok: true });
    scene.double.access.tokens.clear();
    // Octokit itself repeats requests with a token that is only some seconds old.
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 61_000 });
    try {
      scene.asked();
      expect(await Promise.all([list(provider), provider.listFiles('acme/shop', everything)])).toMatchObject([simpleListing, { files: expect.any(Array) }]);
      expect(scene.asked().filter((asked) => asked === tokenRequest)).toHaveLength(1);
      // A new token that is refused as well is not replaced again.
      scene.double.access.tokens.clear();
      vi.setSystemTime(Date.now() + 30_000);
      expect(await failureOf(list(provider))).toMatch(/^provider_unauthorized: /u);
      expect(scene.asked()).not.toContain(tokenRequest);
      scene.double.access.app = null;
      scene.double.access.tokens.clear();
      vi.setSystemTime(Date.now() + 61_000);
      expect(await failureOf(list(provider))).toMatch(/^provider_unauthorized: /u);
      expect(scene.asked()).toEqual(['GET /repos/acme/shop/commits/HEAD', tokenRequest]);
      scene.double.access.app = app;
      vi.setSystemTime(Date.now() - 31_000);
      expect(await list(provider)).toEqual(simpleListing);
    } finally {
      vi.useRealTimers();
    }
  });

  test.each([
    ['another key', { privateKey: makeKey() }],
    ['another installation', { installationId: 8 }],
    ['another App', { appId: 43 }],
    ['an invalid key', { privateKey: '-----BEGIN PRIVATE KEY-----\nrubbish\n-----END PRIVATE KEY-----' }],
  ])('fails with `provider_unauthorized` for %s, and does not show its key', async (_, wrong) => {
    const scene = await createScene();
    const privateKey = makeKey();
    scene.double.access.app = { appId: '42', installationId: 7, key: privateKey };
    await scene.publish(simple);
    const provider = scene.anonymous({ app: { appId: 42, privateKey, installationId: 7, ...wrong } });
    expect(await failureOf(list(provider))).toMatch(/^provider_unauthorized: /u);
    expect(await provider.check()).toMatchObject({ ok: false, detail: expect.stringContaining('refused') });
  });
});
