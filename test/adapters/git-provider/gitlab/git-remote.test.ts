import { describe, expect, onTestFinished, test } from 'vitest';
import { createGitLabProvider, type GitLabOptions } from '../../../../src/adapters/git-provider/gitlab/index.ts';
import { createSystemClock } from '../../../../src/adapters/clock/system-clock.ts';
import type { GitRemote } from '../../../../src/ports/git-provider.ts';

async function remoteOf(options: Omit<GitLabOptions, 'clock'>, repository = 'group/sub/shop'): Promise<GitRemote> {
  const provider = createGitLabProvider({ clock: createSystemClock(), ...options });
  onTestFinished(() => provider.close());
  return await provider.remote(repository);
}

function basic(user: string, token: string): string {
  return `Basic ${Buffer.from(`${user}:${token}`).toString('base64')}`;
}

describe('remote()', () => {
  test.each([
    [undefined, 'https://gitlab.com/group/sub/shop.git'],
    ['https://gitlab.example.com:8443/', 'https://gitlab.example.com:8443/group/sub/shop.git'],
    ['https://example.com/gitlab', 'https://example.com/gitlab/group/sub/shop.git'],
  ])('returns the clone URL and the credential for the GitLab URL %s', async (url, expected) => {
    const options = url === undefined ? {} : { url };
    expect(await remoteOf({ ...options, token: 'glpat-x' })).toEqual({ url: expected, authorization: basic('oauth2', 'glpat-x') });
    expect(await remoteOf(options)).toEqual({ url: expected, authorization: null });
  });

  test('rejects a name that no project can have, and encodes others', async () => {
    await expect(remoteOf({}, 'shop')).rejects.toMatchObject({ code: 'repository_not_found' });
    expect((await remoteOf({}, 'group/a b?c')).url).toBe('https://gitlab.com/group/a%20b%3Fc.git');
  });
});
