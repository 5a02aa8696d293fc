import { AssertionError } from 'node:assert';
import { describe, expect, test } from 'vitest';
import { createGiteaHarness } from '../../examples/gitea-provider/gitea-harness.ts';
import { createGiteaProvider, type GiteaOptions } from '../../examples/gitea-provider/gitea-provider.ts';
import { Failure, isFailureOf } from '../../src/domain/failure.ts';
import { explained } from '../../src/domain/reason.ts';
import type { GitProvider } from '../../src/ports/git-provider.ts';
import type { GitProviderHarness } from '../contracts/git-provider-harness.ts';
import { failureOfCase } from './failure-of-case.ts';

/** Returns a Gitea provider whose failures of `find` are replaced if their code is `provider_failed`. */
function withFailures(change: (token: string) => Error): (options: GiteaOptions) => GitProvider {
  return (options) => {
    const provider = createGiteaProvider(options);
    const find: GitProvider['find'] = (...asked) => provider.find(...asked).catch((error: unknown) => {
      throw isFailureOf(error, 'provider_failed') ? change(options.token) : error;
    });
    return { ...provider, find };
  };
}

const failed = (text: string, cause?: unknown): Error =>
  new Failure('provider_failed', { provider: 'gitea', reason: explained(text) }, { cause });

const mistakes: readonly (readonly [mistake: string, create: (options: GiteaOptions) => GitProvider])[] = [
  [
    'a credential in the reason of a failure',
    withFailures((token) => failed(`the request with the token ${token} failed`)),
  ],
  [
    'a credential in the cause of a failure',
    withFailures((token) => failed('it failed', new Error('request', { cause: { headers: { authorization: token } } }))),
  ],
  [
    'a credential for git in the message of a failure',
    withFailures((token) => failed(`Basic ${Buffer.from(`oauth2:${token}`).toString('base64')} is refused`)),
  ],
  [
    'a credential in the detail of a check',
    (options) => {
      const provider = createGiteaProvider(options);
      return { ...provider, check: async () => ({ ...(await provider.check()), detail: `the token is ${options.token}` }) };
    },
  ],
];

describe('The contract of git providers catches', () => {
  test.each(mistakes)('%s', async (_, create) => {
    expect(await failureOfCase('shows no secret in a failure', () => createGiteaHarness(create))).toBeInstanceOf(AssertionError);
  });

  test.each(['scope', 'key', 'value'])('a credential in the %s of a cached listing', async (place) => {
    const failure = await failureOfCase('stores no secret in its listing cache', () => createCachingHarness(place));
    expect(failure).toMatchObject({ message: 'a scope, key or value of the listing cache contains a secret' });
  });

  test('a harness that names no secret of a provider with a credential', async () => {
    const failure = await failureOfCase('shows no secret in a failure', async () => ({ ...(await createGiteaHarness()), secrets: [] }));
    expect(failure).toMatchObject({ message: 'the provider has a credential, but the harness names no secret' });
  });
});

/** A Gitea provider that caches something for each call of `find`, with its credential in one place. */
async function createCachingHarness(place: string): Promise<GitProviderHarness> {
  const harness = await createGiteaHarness();
  const { host, secrets: [token = ''] } = harness;
  if (host === 'none') throw new Error('the harness has a host');
  const textAt = (each: string): string => (each === place ? `gitea ${token}` : 'gitea');
  return {
    ...harness,
    host: {
      ...host,
      createProvider(timeoutMs, cache) {
        const provider = host.createProvider(timeoutMs);
        return {
          ...provider,
          async find(repository, signal) {
            await cache?.put(textAt('scope'), textAt('key'), textAt('value'));
            return await provider.find(repository, signal);
          },
        };
      },
    },
  };
}
