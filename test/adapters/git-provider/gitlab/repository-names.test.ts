import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createGitLabProvider } from '../../../../src/adapters/git-provider/gitlab/index.ts';
import { createSystemClock } from '../../../../src/adapters/clock/system-clock.ts';
import { parseRepositoryName } from '../../../../src/domain/repository-name.ts';
import { agents, everything, failureOf, list, pairs, simple, simpleListing, start } from '../support.ts';
import { hostOf, providerOf } from './support.ts';

describe('The path of a request', () => {
  test('holds all nested groups of a project', async () => {
    const host = await hostOf({ root: '/gitlab' });
    await host.publish(simple, 'group/sub/deeper/shop');
    expect(await list(providerOf(host), 'group/sub/deeper/shop')).toEqual(simpleListing);
    expect(host.requests[0]?.target).toBe('/gitlab/api/v4/projects/group%2Fsub%2Fdeeper%2Fshop/repository/commits/HEAD?stats=false');
  });

  test.each(['a/b?private_token=x', 'a/b#c', 'a/b%2Fc', 'a/%2e%2e/b', 'a/b c', 'größe/日本', 'a/b;c', 'a/b&c=d', "a/b'c", 'a/..b', 'a/b\u2028c', '🐝/🐝'])(
    'holds the project name %s encoded',
    async (name) => {
      const host = await hostOf();
      await host.publish(simple, name);
      const provider = providerOf(host);
      expect(await provider.find(name)).toEqual({ path: name, defaultBranch: 'main' });
      expect(host.requests[0]?.target).toBe(`/api/v4/projects/${encodeURIComponent(name)}`);
    },
  );

  test('is not requested for an invalid name, nor for a number that is a project id', async () => {
    const host = await hostOf();
    await host.publish(simple);
    const provider = providerOf(host);
    for (const name of ['1000', 'shop', '', '.', '..', 'a/..', '../a', 'a//b', '/a/b', 'a/b/', 'a\\b', 'a/b\n', 'a/\ud800']) {
      expect(await failureOf(list(provider, name))).toMatch(/^repository_not_found: /u);
      expect(await failureOf(provider.find(name))).toMatch(/^repository_not_found: /u);
    }
    expect(host.requests).toEqual([]);
  });

  test('holds any random name encoded', async () => {
    const host = await hostOf();
    const provider = providerOf(host);
    const special = fc.constantFrom('/', '?', '#', '%', '%2F', '%2e', '..', '.', '&', '=', ' ', '+', ';', ':', '@', '\\');
    const name = fc.array(fc.oneof(special, fc.string({ unit: 'grapheme', maxLength: 4 })), { minLength: 1, maxLength: 8 });
    await fc.assert(
      fc.asyncProperty(name, async (parts) => {
        const text = parts.join('');
        const before = host.requests.length;
        expect(await failureOf(provider.listFiles(text, everything))).toMatch(/^repository_not_found: /u);
        const targets = host.requests.slice(before).map(({ target }) => target);
        const isAsked = parseRepositoryName(text).ok && text.includes('/');
        expect(targets).toEqual(isAsked ? [`/api/v4/projects/${encodeURIComponent(text)}/repository/commits/HEAD?stats=false`] : []);
      }),
      { numRuns: 150 },
    );
  });

  test.each(['a?b', 'a#b', 'a%2e', 'a&ref=x', 'a b', 'a+b', '日本', ':(top)a', '..a'])('leads to the right files of a directory with the name %s', async (directory) => {
    const host = await hostOf();
    const path = `${directory}/x?y#%+&é .md`;
    await host.publish([{ id: 'first', at: start, files: [[path, '1'], ['b/x.md', '1']] }]);
    const listing = await providerOf(host).listFiles('acme/shop', { directory: () => directory, accepts: () => true });
    expect(pairs(listing)).toEqual([[path, start]]);
  });

  test('leads to all files if the directory is the root', async () => {
    const host = await hostOf();
    await host.publish(simple);
    const listing = await providerOf(host).listFiles('acme/shop', { directory: () => '', accepts: () => true });
    expect(pairs(listing)).toEqual([...simpleListing, ['src/x', start + 20]]);
  });

  test('leads to a default branch with slashes, also if HEAD is not found', async () => {
    const host = await hostOf();
    await host.publish({ defaultBranch: 'feature/größe#x=1%2F&y', commits: simple });
    const provider = providerOf(host);
    expect(await list(provider)).toEqual(simpleListing);
    expect(await provider.find('acme/shop')).toEqual({ path: 'acme/shop', defaultBranch: 'feature/größe#x=1%2F&y' });
    host.counts();
    host.faults.add({ fault: { kind: 'status', status: 404, body: { message: '404 Commit Not Found' } }, route: 'commit', times: 1 });
    expect(await list(provider)).toEqual(simpleListing);
    expect(host.counts()).toEqual({ commit: 2, project: 1 });
  });
});

describe('A renamed project', () => {
  test('is listed under its new name, after one redirect', async () => {
    const host = await hostOf({ root: '/gitlab' });
    await host.publish(simple, 'acme/old');
    host.projects.rename('acme/old', 'other/deep/skep-config');
    const provider = providerOf(host);
    const names: string[] = [];
    const query = { ...everything, directory: (name: string) => (names.push(name), agents) };
    expect(pairs(await provider.listFiles('acme/old', query))).toEqual(simpleListing);
    expect(names).toEqual(['skep-config']);
    expect(host.counts()).toEqual({ commit: 2, tree: 1, commits: 2 });
    expect(await provider.find('acme/old')).toEqual({ path: 'other/deep/skep-config', defaultBranch: 'main' });
    expect(host.requests.filter(({ target }) => target.includes('acme'))).toHaveLength(2);
  });

  test('has its own upper and lower case in the name, whatever the request has', async () => {
    const host = await hostOf();
    await host.publish(simple, 'Acme/Skep-Config');
    const names: string[] = [];
    const query = { ...everything, directory: (name: string) => (names.push(name), agents) };
    expect(pairs(await providerOf(host).listFiles('acme/skep-config', query))).toEqual(simpleListing);
    expect(names).toEqual(['Skep-Config']);
  });
});

describe('The URL of the host', () => {
  test('determines the names in `hosts`', () => {
    expect(hostsOf()).toEqual(['gitlab.com']);
    expect(hostsOf('https://GitLab.example.com/gitlab/')).toEqual(['gitlab.example.com']);
    expect(hostsOf('http://localhost:8080')).toEqual(['localhost:8080']);
  });

  test.each(['', 'gitlab.com', 'ftp://gitlab.com', 'https://u:p@gitlab.com', 'https://gitlab.com?x', 'https://gitlab.com#x'])(
    'is refused if it is invalid, and is not shown: %s',
    (url) => {
      expect(() => hostsOf(url)).toThrow(TypeError);
      if (url.length > 10) expect(() => hostsOf(url)).not.toThrow(url);
    },
  );
});

function hostsOf(url?: string): readonly string[] {
  return createGitLabProvider({ clock: createSystemClock(), ...(url !== undefined && { url }) }).hosts;
}
