import { generateKeyPairSync } from 'node:crypto';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createSystemClock } from '../../../../src/adapters/clock/system-clock.ts';
import { createGitHubProvider } from '../../../../src/adapters/git-provider/github/index.ts';
import { failureOf } from '../support.ts';
import { createScene } from './support.ts';

function basic(token: string): string {
  return `Basic ${Buffer.from(`x-access-token:${token}`).toString('base64')}`;
}

describe('remote()', () => {
  test.each([
    ['https://api.github.com', 'https://github.com/acme/shop.git'],
    ['https://ghe.example.com/api/v3/', 'https://ghe.example.com/acme/shop.git'],
    ['https://ghe.example.com:8443/api/v3', 'https://ghe.example.com:8443/acme/shop.git'],
    ['https://api.tenant.ghe.com', 'https://tenant.ghe.com/acme/shop.git'],
  ])('returns the clone URL and the credential for the API URL %s', async (api, url) => {
    const provider = createGitHubProvider({ url: api, token: 'ghp_x', clock: createSystemClock() });
    onTestFinished(() => provider.close());
    expect(await provider.remote('acme/shop')).toEqual({ url, authorization: basic('ghp_x') });
    const anonymous = createGitHubProvider({ url: api, clock: createSystemClock() });
    onTestFinished(() => anonymous.close());
    expect(await anonymous.remote('acme/shop')).toEqual({ url, authorization: null });
  });

  test('sends no request, except one for the token of an App', async () => {
    const scene = await createScene();
    const privateKey = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ type: 'pkcs8', format: 'pem' });
    scene.double.access.app = { appId: '42', installationId: 7, key: privateKey };
    await scene.provider().remote('acme/shop');
    expect(scene.asked()).toEqual([]);
    const provider = scene.anonymous({ app: { appId: 42, privateKey, installationId: 7 } });
    const { authorization } = await provider.remote('acme/shop');
    expect(Buffer.from((authorization ?? '').slice('Basic '.length), 'base64').toString()).toMatch(/^x-access-token:ghs_/u);
    expect(await provider.remote('acme/shop')).toMatchObject({ authorization });
    expect(scene.asked()).toEqual(['POST /app/installations/7/access_tokens']);
    const wrong = scene.anonymous({ app: { appId: 42, privateKey, installationId: 8 } });
    expect(await failureOf(wrong.remote('acme/shop'))).toMatch(/^provider_unauthorized: /u);
  });

  test('rejects a name that no repository can have', async () => {
    const scene = await createScene();
    for (const name of ['shop', 'acme/shop/deeper']) {
      expect(await failureOf(scene.provider().remote(name))).toMatch(/^repository_not_found: /u);
    }
  });
});
