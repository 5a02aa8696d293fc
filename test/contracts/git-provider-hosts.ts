import assert from 'node:assert/strict';
import { isFailureOf } from '../../src/domain/failure.ts';
import type { GitProvider } from '../../src/ports/git-provider.ts';
import { agents, type Dated, type ProviderHost, type StageCase } from './git-provider-harness.ts';
import type { CommitDescription } from './git-repository.ts';
import { assertFails } from './contract.ts';
import type { HostBehaviour } from './host-proxy.ts';

const start = 1_600_000_000;
const file = `${agents}/a.md`;
const everything = { directory: () => agents, accepts: () => true };
export const simple = { commits: [{ id: 'first', at: start, files: [[file, '1'] as const] }] };

// The blob id that git computes from the content of the file.
const content = { path: file, blobId: '56a6051ca2b02b04ef92d5150c9ef600403cb1de' };

// Short, so that a provider does not retry for long.
const briefMs = 500;
/** A behaviour of the host after which a provider may try again until its time limit. */
export const isTemporary = (behaviour: HostBehaviour): boolean =>
  behaviour === 'lose' || behaviour === 'stall' || (typeof behaviour === 'number' && behaviour >= 500);
// Long enough for a busy machine. A provider with a time limit never waits so long.
const patienceMs = 5000;
export const longMs = 60_000;
// Longer than a provider may wait by itself.
const retryAfterSeconds = 900;

// Nothing is opened, even if the host answers.
const nothingNew = { branch: 'main', title: 'Nothing', body: '', base: 'main', draft: false };

type Call = (provider: GitProvider, repository: string) => Promise<unknown> | undefined;

/** A call of every method that asks the host. It is undefined if the provider does not have the method. */
export const calls: readonly (readonly [what: string, call: Call])[] = [
  ['listFiles', (provider, repository) => provider.listFiles(repository, everything)],
  ['find', (provider, repository) => provider.find(repository)],
  ['readFile', (provider, repository) => provider.readFile(repository, content, 1)],
  ['searchRepositories', (provider) => provider.searchRepositories?.('shop', { after: null, limit: 10 })],
  ['listBranches', (provider, repository) => provider.listBranches?.(repository, { after: null, limit: 10 })],
  ['openPullRequest', (provider, repository) => provider.openPullRequest?.(repository, nothingNew)],
];

/** Returns a case in which every answer of the host is this one, and every call of a new provider must fail as accepted. */
function failureCase(name: string, behaviour: HostBehaviour, accepts: (error: unknown, provider: GitProvider) => boolean): StageCase {
  return [name, async ({ publish, host }) => {
    const repository = await publish(simple);
    if (host === 'none') return;
    host.intercept(() => behaviour);
    for (const [what, call] of calls) {
      const fresh = host.createProvider(isTemporary(behaviour) ? briefMs : longMs);
      const asked = call(fresh, repository);
      if (asked !== undefined) await assertFails(asked, (error) => accepts(error, fresh), `${what} ${name}`);
    }
  }];
}

/** Cases that need control over a host. A provider without a network always satisfies them. */
export const hostCases: readonly StageCase[] = [
  [
    'fails with provider_failed, and never with repository_not_found or an empty list, on a 5xx status',
    async ({ publish, host }) => {
      const repository = await publish(simple);
      if (host === 'none') return;
      const requests = await countRequests(host, (fresh) => fresh.listFiles(repository, everything));
      for (let good = 0; good < requests; good += 1) {
        const status = [503, 500, 502][good % 3] ?? 500;
        let seen = 0;
        host.intercept(() => (++seen > good ? status : 'answer'));
        const listing = host.createProvider(briefMs).listFiles(repository, everything);
        await assertFails(listing, isHostFailure, `listFiles fails because of the status ${status} after ${good} answers`);
      }
      host.intercept(() => 500);
      const provider = host.createProvider(briefMs);
      await assertFails(provider.find(repository), isHostFailure, 'find fails because of the status 500');
      await assertFails(provider.readFile(repository, content, 1), isHostFailure, 'readFile fails because of the status 500');
      assert.equal((await provider.check()).ok, false, 'the check of a host that fails');
    },
  ],
  [
    'lists all files after a listing that failed in the middle',
    async ({ publish, list, host }) => {
      if (host === 'none') return;
      const files = ['a', 'b', 'c'].map((name) => [`${agents}/${name}.md`, name] as const);
      const commits = files.map((added, at) => ({ id: `adds-${at}`, at: start + at, files: [added] }));
      const repository = await publish({ commits });
      const expected = files.map(([path], at) => [path, start + at]);
      const requests = await countRequests(host, (fresh) => list(repository, agents, fresh));
      for (let good = 0; good < requests; good += 1) {
        let seen = 0;
        host.intercept(() => (++seen > good ? 500 : 'answer'));
        const provider: GitProvider = host.createProvider(longMs);
        await assertFails(list(repository, agents, provider), isHostFailure, `the listing fails after ${good} answers`);
        host.intercept(null);
        assert.deepEqual(await list(repository, agents, provider), expected, `the next listing, after ${good} answers`);
      }
    },
  ],
  [
    'fails with provider_timeout if the host does not answer',
    async ({ publish, host }) => {
      const repository = await publish(simple);
      if (host === 'none') return;
      host.intercept(() => 'stall');
      const provider = host.createProvider(300);
      for (const [what, call] of calls) {
        const asked = call(provider, repository);
        if (asked !== undefined) await assertFails(inTime(asked), isTimeout, `${what} fails with provider_timeout`);
      }
      assert.equal((await inTime(provider.check())).ok, false, 'the check of a host that does not answer');
    },
  ],
  failureCase('fails with provider_unauthorized if the host answers 401', 401, (error, { name }) =>
    isFailureOf(error, 'provider_unauthorized') && error.context.provider === name),
  failureCase(
    'fails with provider_rate_limited and the number of seconds to wait if the host answers 429', { retryAfterSeconds },
    (error, { name }) => isFailureOf(error, 'provider_rate_limited') && error.context.provider === name
      && Math.abs(error.context.retryAfterSeconds - retryAfterSeconds) <= 1,
  ),
  // An adapter may know what a 403 of its host means. It never means that the content does not exist.
  failureCase('fails, but not with file_not_found or an empty list, if the host answers 403', 403, (error) =>
    isFailureOf(error, 'provider_unauthorized', 'repository_not_found', 'provider_failed', 'pull_request_refused')),
  failureCase('fails with provider_failed or provider_timeout if the connection breaks', 'lose', isHostFailure),
  [
    'lists the files of one commit, even if someone pushes meanwhile',
    async ({ publish, list, host }) => {
      if (host === 'none') return;
      const before: CommitDescription[] = [
        { id: 'root', at: start, files: [['src/x', '1']] },
        { id: 'brought', parents: ['root'], at: start + 100, files: [[file, '1'], [`${agents}/deploy/b.md`, '1']] },
      ];
      // The push brings an earlier date of a file, removes another one, and adds a third.
      const after: CommitDescription[] = [
        ...before,
        { id: 'side', parents: ['root'], at: start + 10, files: [[file, '2']] },
        {
          id: 'merge',
          parents: ['brought', 'side'],
          at: start + 200,
          files: [[file, '2'], [`${agents}/deploy/b.md`, null], [`${agents}/deploy/c.md`, '1']],
        },
      ];
      const old = [[file, start + 100], [`${agents}/deploy/b.md`, start + 100]];
      const pushed = [[file, start + 10], [`${agents}/deploy/c.md`, start + 200]];
      const shop = await publish({ commits: before });
      const requests = await countRequests(host, async (fresh) => await list(shop, agents, fresh));
      for (let answered = 0; answered <= requests; answered += 1) {
        const name = `acme/shop-${answered}`;
        host.intercept(null);
        const repository = await publish({ commits: before }, name);
        let seen = 0;
        host.intercept(async (): Promise<HostBehaviour> => {
          // Counted before the push, because the provider may send other requests meanwhile.
          seen += 1;
          if (seen === answered + 1) await publish({ commits: after }, name);
          return 'answer';
        });
        const when = `a push after ${answered} answers`;
        const listed: readonly Dated[] = await list(repository, agents, host.createProvider(longMs)).catch((error: unknown) => {
          throw new assert.AssertionError({ message: `${when} fails the listing: ${String(error)}` });
        });
        const isWhole = [old, pushed].some((whole) => JSON.stringify(whole) === JSON.stringify(listed));
        assert.ok(isWhole, `${when}: ${JSON.stringify(listed)} is neither the old state nor the new one`);
      }
    },
  ],
];

/** Returns the number of requests of a provider with an empty cache. */
export async function countRequests(host: ProviderHost, use: (fresh: GitProvider) => Promise<unknown>): Promise<number> {
  let requests = 0;
  host.intercept(() => {
    requests += 1;
    return 'answer';
  });
  await use(host.createProvider(longMs));
  host.intercept(null);
  assert.ok(requests > 0, 'the harness intercepts no request of its provider');
  return requests;
}

export function isTimeout(error: unknown): boolean {
  return isFailureOf(error, 'provider_timeout');
}

export function isHostFailure(error: unknown): boolean {
  return isFailureOf(error, 'provider_failed') || isTimeout(error);
}

/** Fails if the provider waits longer than any of its time limits. */
export async function inTime<T>(work: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new assert.AssertionError({ message: 'there is no time limit' })), patienceMs);
  try {
    return await Promise.race([work, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
