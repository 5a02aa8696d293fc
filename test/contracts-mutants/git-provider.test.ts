import { AssertionError } from 'node:assert';
import { matchesGlob } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createGiteaHarness } from '../../examples/gitea-provider/gitea-harness.ts';
import { createGiteaProvider, type GiteaOptions } from '../../examples/gitea-provider/gitea-provider.ts';
import { Failure, isFailureOf } from '../../src/domain/failure.ts';
import type { DatedFile, GitProvider } from '../../src/ports/git-provider.ts';
import type { GitProviderHarness } from '../contracts/git-provider-harness.ts';
import { createMemoryGitProvider } from '../doubles/memory/index.ts';
import { readPublished } from '../doubles/memory/published-repository.ts';
import { failureOfCase } from './failure-of-case.ts';

type Fetch = typeof fetch;

/** Returns a Gitea provider whose requests and responses go through `mistaken`. */
function withFetch(mistaken: (original: Fetch) => Fetch): (options: GiteaOptions) => GitProvider {
  return (options) => createGiteaProvider({ ...options, fetch: mistaken(fetch) });
}

/** Returns a Gitea provider that gets changed responses. */
function withAnswers(change: (body: string, response: Response) => Response): (options: GiteaOptions) => GitProvider {
  return withFetch((original) => async (input, init) => {
    const response = await original(input, init);
    return change(await response.text(), response);
  });
}

function withBody(change: (body: string) => string): (options: GiteaOptions) => GitProvider {
  return withAnswers((body, { status, headers }) => new Response(change(body), { status, headers }));
}

/** Returns a Gitea provider with replaced methods. */
function withMethods(change: (provider: GitProvider) => Partial<GitProvider>): (options: GiteaOptions) => GitProvider {
  return (options) => {
    const provider = createGiteaProvider(options);
    return { ...provider, ...change(provider) };
  };
}

const withUnescapedNames = withFetch((original) => (input, init) =>
  original(typeof input === 'string' ? input.replaceAll('%3F', '?') : input, init));

const withMissingAsEmpty = withMethods((provider) => ({
  readFile: (...asked) => provider.readFile(...asked).catch((error: unknown) => {
    if (isFailureOf(error, 'file_not_found')) return new Uint8Array();
    throw error;
  }),
}));

const withTokenInUrl = withMethods((provider) => ({
  async remote(repository, signal) {
    const remote = await provider.remote(repository, signal);
    return { ...remote, url: remote.url.replace('://', '://a-token@') };
  },
}));

const mistakes: readonly (readonly [mistake: string, contractCase: string, create: (options: GiteaOptions) => GitProvider])[] = [
  [
    'the author date that is used instead of the committer date',
    'dates a file by the committer date',
    withBody((body) => body.replaceAll(/"author":\{"date":("[^"]+")\},"committer":\{"date":"[^"]+"\}/gu, '"committer":{"date":$1}')),
  ],
  [
    'a 5xx status that is reported as "not found"',
    'fails with provider_failed, and never',
    withAnswers((body, { status, headers }) => new Response(body, { status: status >= 500 ? 404 : status, headers })),
  ],
  [
    'a refused credential that is reported as "not found"',
    'fails with provider_unauthorized',
    withAnswers((body, { status, headers }) => new Response(body, { status: status === 401 ? 404 : status, headers })),
  ],
  [
    'a rate limit that is reported as another failure',
    'fails with provider_rate_limited',
    withAnswers((body, { status, headers }) => new Response(body, { status: status === 429 ? 400 : status, headers })),
  ],
  [
    'a wait in milliseconds instead of seconds',
    'fails with provider_rate_limited',
    withAnswers((body, { status, headers }) => {
      const seconds = headers.get('retry-after');
      return new Response(body, { status, headers: seconds === null ? headers : { 'retry-after': `${seconds}000` } });
    }),
  ],
  [
    'a broken connection that is not reported as a failure',
    'fails with provider_failed or provider_timeout if the connection breaks',
    withMethods((provider) => ({
      find: (...asked) => provider.find(...asked).catch((error: unknown) => {
        throw error instanceof Error && error.cause instanceof TypeError ? error.cause : error;
      }),
    })),
  ],
  ['a missing time limit', 'fails with provider_timeout', withFetch((original) => (input, init) => original(input, { ...init, signal: null }))],
  [
    'a renamed repository that is returned under its old name',
    'finds a renamed repository',
    withMethods((provider) => ({ find: async (path, signal) => ({ ...(await provider.find(path, signal)), path }) })),
  ],
  [
    'a repository name with an unescaped question mark',
    'fails with repository_not_found if there is no such repository',
    withUnescapedNames,
  ],
  [
    'a tree listing that stops after the first page',
    'lists a directory of 1,100 files',
    withBody((body) => body.replace('"truncated":true', '"truncated":false')),
  ],
  [
    'a history that stops after the first page',
    'dates a file by the last page of its history',
    withAnswers((body, { status }) => new Response(body, { status })),
  ],
  [
    'a wrong Authorization for git',
    'gives git an Authorization that the host accepts',
    withMethods((provider) => ({
      async remote(repository, signal) {
        const remote = await provider.remote(repository, signal);
        return { ...remote, authorization: remote.authorization?.replace('Basic', 'Bearer') ?? null };
      },
    })),
  ],
  [
    'file content that is decoded as text',
    'reads the content of files byte for byte',
    withMethods((provider) => ({
      readFile: async (...asked) => Buffer.from(Buffer.from(await provider.readFile(...asked)).toString('utf8')),
    })),
  ],
  [
    'a file that is truncated at the size limit',
    'reads a file of exactly as many bytes',
    withMethods((provider) => ({
      readFile: async (repository, file, maxBytes) => (await provider.readFile(repository, file, 2 ** 30)).subarray(0, maxBytes),
    })),
  ],
  [
    'a missing file that is returned as an empty file',
    'fails with file_not_found if',
    withMissingAsEmpty,
  ],
  [
    'a forbidden file that is reported as "not found"',
    'fails, but not with file_not_found or an empty list, if the host answers 403',
    withMethods((provider) => ({
      readFile: (repository, file, maxBytes, signal) => provider.readFile(repository, file, maxBytes, signal).catch(() => {
        throw new Failure('file_not_found', { path: file.path });
      }),
    })),
  ],
  [
    'a branch name that is used instead of a commit',
    'lists the files of one commit, even if someone pushes meanwhile',
    withBody((body) => body.replace(/^(\[\{"ref":"refs\/heads\/main","object":\{"sha":")[0-9a-f]+/u, '$1main')),
  ],
];

describe('The contract of git providers catches', () => {
  test.each(mistakes)('%s', async (_, contractCase, create) => {
    expect(await failureOfCase(contractCase, () => createGiteaHarness(create))).toBeInstanceOf(AssertionError);
  });

  test.each([
    ['directory', 'takes the directory literally'],
    ['history', 'dates files by their own names'],
  ] as const)('a pattern in the name of a %s', async (place, contractCase) => {
    expect(await failureOfCase(contractCase, () => createPatternHarness(place))).toBeInstanceOf(AssertionError);
  });

  test('a wrong trait, and names it', async () => {
    const failure = await failureOfCase('gives the declared date if a clock was wrong', async () => {
      const harness = await createGiteaHarness();
      return { ...harness, traits: { ...harness.traits, clockSkew: 'oldest-date' } };
    });
    expect(failure).toMatchObject({ message: expect.stringContaining('decided by the trait clockSkew: oldest-date') });
  });

  test('a wrong result, and says what is expected and what happened', async () => {
    const failures = [
      await failureOfCase('fails with repository_not_found if', () => createGiteaHarness(withUnescapedNames)),
      await failureOfCase('fails with file_not_found if', () => createGiteaHarness(withMissingAsEmpty)),
      await failureOfCase('returns the URL that git fetches from', () => createGiteaHarness(withTokenInUrl)),
    ];
    expect(failures.map((failure) => (failure instanceof Error ? failure.message : failure))).toEqual([
      'listFiles fails with repository_not_found for acme/shop?x, but it succeeds',
      expect.stringMatching(/^the repository has no content with the id "[0-9a-f]{40}", so readFile fails with file_not_found, but it succeeds$/u),
      'the URL has a username, which may contain a credential',
    ]);
  });

});

/** A memory provider that wrongly matches names as patterns in one of two places. */
async function createPatternHarness(place: 'directory' | 'history'): Promise<GitProviderHarness> {
  const memory = createMemoryGitProvider();
  const provider: GitProvider = {
    ...memory,
    async listFiles(repository, query) {
      const listing = await memory.listFiles(repository, { directory: () => '', accepts: () => true });
      const files = listing.files.map((file) => ({ ...file, path: file.path.slice(1) }));
      const directory = query.directory('');
      const isBelow = (path: string): boolean => {
        return place === 'directory' ? matchesGlob(path, `${directory}/**`) : path.startsWith(`${directory}/`);
      };
      const dateOf = ({ path, createdAt }: DatedFile): number => {
        const matched = place === 'history' ? files.filter((each) => matchesGlob(each.path, path)) : [];
        return Math.min(createdAt, ...matched.map((each) => each.createdAt));
      };
      return { directory, files: files.filter(({ path }) => isBelow(path)).map((file) => ({ ...file, createdAt: dateOf(file) })) };
    },
  };
  return {
    provider,
    traits: { clockSkew: 'introduction', discardedHistory: 'counts', invalidUtf8: 'omitted', remote: 'url', formerName: 'nothing' },
    secrets: [],
    host: 'none',
    pullRequests: 'none',
    async publish(gitDir, name) {
      // With a leading slash, the whole repository is one directory of the memory provider.
      const { files, ...repository } = await readPublished(gitDir, name);
      memory.put({ ...repository, files: files.map((file) => ({ ...file, path: `/${file.path}` })) });
      return name;
    },
    rename: () => Promise.reject(new Error('not asked for')),
    acceptsGit: async () => true,
    close: () => memory.close(),
  };
}
