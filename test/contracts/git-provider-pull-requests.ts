import assert from 'node:assert/strict';
import { type FailureContexts, isFailure, isFailureOf } from '../../src/domain/failure.ts';
import type { NewPullRequest } from '../../src/ports/git-provider.ts';
import { assertFails } from './contract.ts';
import type { GitProviderStage, PullRequestControl, StageCase } from './git-provider-harness.ts';
import type { RepositoryDescription } from './git-repository.ts';

const start = 1_600_000_000;

/** The branch `work` is ahead of the branches `main` (the default) and `next`. */
const shop: RepositoryDescription = {
  commits: [{ id: 'first', at: start, files: [['a', '1']] }, { id: 'second', at: start + 10, files: [['a', '2']] }],
  branches: { main: 'first', next: 'first', work: 'second', other: 'second' },
};

const wanted: NewPullRequest = { branch: 'work', title: 'Sell coffee', body: 'Tea is *out*.\n', base: null, draft: false };
const first = { number: 1, title: wanted.title, body: wanted.body, branch: 'work', base: 'main', isDraft: false };

interface PullRequestStage {
  readonly repository: string;
  readonly control: PullRequestControl;
  readonly open: (changes?: Partial<NewPullRequest>, signal?: AbortSignal) => Promise<{ readonly number: number; readonly url: string }>;
  readonly host: GitProviderStage['host'];
}

/** A case of pull requests. A provider that the harness declares to be without them must not open any. */
function pullRequestCase(name: string, run: (stage: PullRequestStage) => Promise<void>): StageCase {
  return [name, async ({ publish, provider, pullRequests: control, host }) => {
    const repository = await publish(shop);
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
    const isRefusal = (branch: string, code: string) => (error: unknown): boolean => {
      assert.ok(isFailureOf(error, 'pull_request_refused'), String(error));
      const { context }: { readonly context: FailureContexts['pull_request_refused'] } = error;
      assert.deepEqual([context.repository, context.branch, context.reason.code], [repository, branch, code]);
      return true;
    };
    await assert.rejects(open({ branch: 'main' }), isRefusal('main', 'nothing_to_merge'));
    await control.forbid();
    await assert.rejects(open(), isRefusal('work', 'pull_request_forbidden'));
    assert.deepEqual(await control.open(repository), []);
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

function isFailed(error: unknown): void {
  assert.ok(isFailureOf(error, 'provider_failed'), String(error));
}
