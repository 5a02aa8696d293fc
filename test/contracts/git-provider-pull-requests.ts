import assert from 'node:assert/strict';
import { type FailureContexts, isFailure, isFailureOf } from '../../src/domain/failure.ts';
import type { NewPullRequest } from '../../src/ports/git-provider.ts';
import { assertFails, decidedBy } from './contract.ts';
import type { GitProviderStage, PullRequestControl, StageCase } from './git-provider-harness.ts';
import { countRequests, inTime, isTemporary, isTimeout, longMs } from './git-provider-hosts.ts';
import type { RepositoryDescription } from './git-repository.ts';
import type { HostBehaviour } from './host-proxy.ts';

const start = 1_600_000_000;

/** The branch `work` is ahead of the branches `main` (the default) and `next`. */
const shop: RepositoryDescription = {
  commits: [{ id: 'first', at: start, files: [['a', '1']] }, { id: 'second', at: start + 10, files: [['a', '2']] }],
  branches: { main: 'first', next: 'first', work: 'second', other: 'second' },
};

const wanted: NewPullRequest = { branch: 'work', title: 'Sell coffee', body: 'Tea is *out*.\n', base: null, draft: false };
const first = { number: 1, title: wanted.title, body: wanted.body, branch: 'work', base: 'main', isDraft: false };

/** More than a page of the hosts that Skep knows. */
const many = Array.from({ length: 100 }, (_, index) => `branch-${index}`);
const atOnce = 10;

// Long enough for the requests of a call, and short, so that a provider does not retry for long.
const briefMs = 1000;

const faults: readonly (readonly [behaviour: HostBehaviour, accepts: (error: unknown) => boolean])[] = [
  [401, (error) => isFailureOf(error, 'provider_unauthorized')],
  [{ retryAfterSeconds: 900 }, (error) => isFailureOf(error, 'provider_rate_limited')],
  [500, (error) => isFailureOf(error, 'provider_failed', 'provider_timeout')],
  ['stall', isTimeout],
];

interface PullRequestStage {
  readonly repository: string;
  readonly control: PullRequestControl;
  readonly open: (changes?: Partial<NewPullRequest>, signal?: AbortSignal) => Promise<{ readonly number: number; readonly url: string }>;
  readonly host: GitProviderStage['host'];
}

/** A case of pull requests. A provider that the harness declares to be without them must not open any. */
function pullRequestCase(name: string, run: (stage: PullRequestStage) => Promise<void>, description = shop): StageCase {
  return [name, async ({ publish, provider, pullRequests: control, host }) => {
    const repository = await publish(description);
    if (control === 'none') {
      const opened = provider.openPullRequest?.(repository, wanted);
      if (opened !== undefined) await assertFails(opened, isFailure, 'it fails to open a pull request, because the harness has none');
      return;
    }
    await run({
      repository, control, host,
      async open(changes, signal) {
        const opened = await provider.openPullRequest?.(repository, { ...wanted, ...changes }, signal);
        return opened ?? assert.fail('the provider has no openPullRequest');
      },
    });
  }];
}

export const pullRequestCases: readonly StageCase[] = [
  pullRequestCase('opens a pull request into the default branch, and updates it on the next call', async ({ repository, control, open }) => {
    const opened = await open();
    assert.deepEqual(opened, { number: 1, url: opened.url });
    assert.match(opened.url, /^https?:\/\/.*\b1$/u);
    assert.deepEqual(await control.open(repository), [first]);
    assert.deepEqual(await open({ title: 'Sell tea: "all" & more', body: '' }), opened);
    assert.deepEqual(await control.open(repository), [{ ...first, title: 'Sell tea: "all" & more', body: '' }]);
    assert.equal((await open({ branch: 'other' })).number, 2);
    assert.equal((await control.open(repository)).length, 2);
  }),
  pullRequestCase('changes the base branch only if one is given', async ({ repository, control, open }) => {
    await open({ base: 'next' });
    assert.deepEqual(await control.open(repository), [{ ...first, base: 'next' }]);
    await open();
    assert.deepEqual(await control.open(repository), [{ ...first, base: 'next' }]);
    assert.equal((await open({ base: 'main' })).number, 1);
    assert.deepEqual(await control.open(repository), [first]);
  }),
  pullRequestCase('opens a draft, and does not change whether an open pull request is a draft', async ({ repository, control, open }) => {
    await open({ draft: true });
    assert.deepEqual(await control.open(repository), [{ ...first, isDraft: true }]);
    await open({ title: 'Sell tea' });
    assert.deepEqual(await control.open(repository), [{ ...first, title: 'Sell tea', isDraft: true }]);
    await open({ branch: 'other' });
    await open({ branch: 'other', draft: true });
    assert.deepEqual((await control.open(repository)).map(({ isDraft }) => isDraft), [true, false]);
  }),
  pullRequestCase('opens a new pull request after the first was closed', async ({ repository, control, open }) => {
    const opened = await open();
    await control.close(repository, opened.number);
    assert.equal((await open()).number, 2);
    assert.deepEqual(await control.open(repository), [{ ...first, number: 2 }]);
  }),
  pullRequestCase("does not change a fork's pull request from a branch with the same name", async ({ repository, control, open }) => {
    await control.openFromFork(repository, 'work', 'main');
    assert.equal((await open()).number, 2);
    await control.openFromFork(repository, 'work', 'next');
    assert.equal((await open({ title: 'Sell tea' })).number, 2);
    assert.deepEqual(await control.open(repository), [{ ...first, number: 2, title: 'Sell tea' }]);
  }),
  pullRequestCase('opens one pull request for many concurrent callers', async ({ repository, control, open }) => {
    const opened = await Promise.all(Array.from({ length: 5 }, () => open()));
    assert.deepEqual(opened.map(({ number }) => number), [1, 1, 1, 1, 1]);
    assert.deepEqual(await control.open(repository), [first]);
  }),
  pullRequestCase("opens one pull request if the host's response is lost", async ({ repository, control, open, host }) => {
    if (host === 'none') return;
    let requests = 0;
    const intercept = (isLost: (request: number) => boolean): void => {
      requests = 0;
      host.intercept(() => {
        requests += 1;
        return isLost(requests) ? 'lose' : 'answer';
      });
    };
    intercept(() => false);
    await open();
    const last = requests;
    await control.close(repository, 1);
    // A provider may retry by itself.
    intercept((request) => request === last);
    await open().catch(isFailed);
    assert.equal((await open()).number, 2);
    intercept((request) => request >= last);
    await open({ branch: 'other' }).then(() => assert.fail('it succeeds without an answer'), isFailed);
    host.intercept(null);
    assert.equal((await open({ branch: 'other' })).number, 3);
    assert.deepEqual(await control.open(repository), [{ ...first, number: 2 }, { ...first, number: 3, branch: 'other' }]);
  }),
  pullRequestCase('fails with pull_request_refused if the host forbids it or there is nothing to merge', async ({ repository, control, open }) => {
    await assert.rejects(open({ branch: 'main' }), isRefusal(repository, 'main', 'nothing_to_merge'));
    await control.forbid();
    await assert.rejects(open(), isRefusal(repository, 'work', 'pull_request_forbidden'));
    assert.deepEqual(await control.open(repository), []);
  }),
  pullRequestCase('treats a branch whose commits are all in the base as declared', async ({ repository, control, open }) => {
    await decidedBy(control, 'emptyPullRequests', async (trait) => {
      if (trait === 'opened') assert.equal((await open({ branch: 'next' })).number, 1);
      else await assert.rejects(open({ branch: 'next' }), isRefusal(repository, 'next', 'nothing_to_merge'));
      assert.equal((await control.open(repository)).length, trait === 'opened' ? 1 : 0);
    });
  }),
  pullRequestCase('finds the open pull request of a branch among 100 others', async ({ repository, control, open }) => {
    const opened = await open();
    for (let at = 0; at < many.length; at += atOnce) {
      await Promise.all(many.slice(at, at + atOnce).map((branch) => open({ branch })));
    }
    assert.deepEqual(await open(), opened);
    const newest = (await control.open(repository)).at(-1);
    assert.equal((await open({ branch: newest?.branch ?? '' })).number, newest?.number);
    assert.equal((await control.open(repository)).length, many.length + 1);
  }, { ...shop, branches: { ...shop.branches, ...Object.fromEntries(many.map((branch) => [branch, 'second'])) } }),
  pullRequestCase('openPullRequest fails as other calls do after some answers', async ({ repository, control, open, host }) => {
    if (host === 'none') return;
    // A new pull request, then an update of it.
    for (const isOpen of [false, true]) {
      const branch = isOpen ? 'other' : 'work';
      const requests = await countRequests(host, (fresh) => fresh.openPullRequest?.(repository, { ...wanted, branch: 'other' }) ?? open());
      for (const [behaviour, accepts] of faults) {
        for (let good = 0; good < requests; good += 1) {
          let seen = 0;
          host.intercept(() => (++seen > good ? behaviour : 'answer'));
          const opened = host.createProvider(isTemporary(behaviour) ? briefMs : longMs).openPullRequest?.(repository, { ...wanted, branch });
          const expected = `openPullRequest fails as find does if the answer is ${JSON.stringify(behaviour)} after ${good} answers`;
          await assertFails(inTime(opened ?? open()), accepts, expected);
        }
      }
      host.intercept(null);
    }
    assert.deepEqual((await control.open(repository)).map(({ branch }) => branch), ['other']);
  }),
  [
    'fails to open a pull request with repository_not_found if there is no such repository',
    async ({ publish, provider, pullRequests }) => {
      if (pullRequests === 'none') return;
      await publish(shop);
      const opened = async (): Promise<unknown> => await provider.openPullRequest?.('acme/missing', wanted);
      await assert.rejects(opened, (error) => isFailureOf(error, 'repository_not_found') && error.context.repository === 'acme/missing');
    },
  ],
  pullRequestCase('rejects with the reason of a signal that has fired, and opens no pull request', async ({ repository, control, open }) => {
    const reason = new Error('the caller has left');
    const opened = open({}, AbortSignal.abort(reason));
    await assertFails(opened, (error) => error === reason, 'openPullRequest rejects with the reason of the signal');
    assert.deepEqual(await control.open(repository), []);
    assert.equal((await open()).number, 1);
  }),
];

function isRefusal(repository: string, branch: string, code: string): (error: unknown) => boolean {
  return (error) => {
    assert.ok(isFailureOf(error, 'pull_request_refused'), String(error));
    const { context }: { readonly context: FailureContexts['pull_request_refused'] } = error;
    assert.deepEqual([context.repository, context.branch, context.reason.code], [repository, branch, code]);
    return true;
  };
}

function isFailed(error: unknown): void {
  assert.ok(isFailureOf(error, 'provider_failed'), String(error));
}
