import assert from 'node:assert/strict';
import { inspect } from 'node:util';
import { isFailureOf, type FailureCode, type FailureContexts } from '../../src/domain/failure.ts';
import { neverAborts } from '../../src/ports/abort-signals.ts';
import { noProgress, type CheckoutCase, type CheckoutSource } from './repository-checkouts-harness.ts';

const simple = { commits: [{ id: 'first', at: 1_600_000_000, files: [['a', '1'] as const] }] };

/** Returns a check for a failure with this code and context. */
function named<C extends FailureCode>(code: C, context: FailureContexts[C]): (error: unknown) => boolean {
  return (error) => {
    if (!isFailureOf(error, code)) return false;
    assert.deepEqual(error.context, context);
    return true;
  };
}

export const refusalCases: readonly CheckoutCase[] = [
  [
    'fails with repository_not_found if there is no such repository',
    async ({ open, missing }) => {
      const source = await missing('acme/missing');
      await assert.rejects(open(source), named('repository_not_found', { repository: source.repository }));
    },
  ],
  [
    "fails with branch_not_found and the branch's name if there is no such branch",
    async ({ publish, open }) => {
      const source = await publish(simple);
      for (const branch of ['other', 'mai', 'main2', 'HEAD', '--upload-pack=x', 'a..b', 'a b', '', 'refs/heads/main', '*', 'x.lock']) {
        await assert.rejects(open(source, branch), named('branch_not_found', { repository: source.repository, branch }), branch);
      }
    },
  ],
  [
    'fails with repository_empty only if no branch has a commit',
    async ({ publish, open }) => {
      const empty = await publish({ commits: [] }, 'acme/empty');
      await assert.rejects(open(empty, 'main'), named('repository_empty', { repository: empty.repository, branch: 'main' }));
      const other = await publish({ ...simple, unborn: 'next' }, 'acme/unborn');
      await assert.rejects(open(other, 'next'), named('branch_not_found', { repository: other.repository, branch: 'next' }));
    },
  ],
  [
    'tells an invalid credential from one without access to the repository, and leaks neither',
    async ({ traits, refused, open }) => {
      if (traits.access === 'open') return;
      const [unknown, unreadable] = [await refused('acme/one', 'credential'), await refused('acme/two', 'repository')];
      await assert.rejects(open(unknown), named('provider_unauthorized', { provider: unknown.provider }));
      const { provider, repository } = unreadable;
      await assert.rejects(open(unreadable), named('repository_forbidden', { provider, repository }));
      for (const source of [unknown, unreadable]) {
        const error: unknown = await open(source, 'main').then(() => null, (error: unknown) => error);
        const { authorization } = source.remote;
        assert.equal(authorization !== null && inspect(error, { depth: 20 }).includes(authorization), false);
      }
    },
  ],
  [
    'checks whether a branch can be checked out',
    async ({ checkouts, publish, missing, open }) => {
      const source = await publish({ ...simple, branches: { 'feature/one': 'first' } });
      const [empty, gone] = [await publish({ commits: [] }, 'acme/empty'), await missing('acme/gone')];
      const check = (of: CheckoutSource, branch: string): Promise<void> => checkouts.checkBranch({ ...of, branch }, neverAborts);
      for (const branch of ['main', 'feature/one']) await check(source, branch);
      await assert.rejects(check(source, 'two'), named('branch_not_found', { repository: source.repository, branch: 'two' }));
      await assert.rejects(check(empty, 'main'), named('repository_empty', { repository: empty.repository, branch: 'main' }));
      await assert.rejects(check(gone, 'main'), named('repository_not_found', { repository: gone.repository }));
      const reason = new Error('the caller has left');
      const left = checkouts.checkBranch({ ...source, branch: 'main' }, AbortSignal.abort(reason));
      await assert.rejects(left, (error: unknown) => error === reason);
      assert.deepEqual((await open(source)).files, { a: '1' });
    },
  ],
  [
    'rejects with the reason of a signal that has fired, and serves the next caller',
    async ({ checkouts, publish, open }) => {
      const source = await publish(simple);
      const request = { ...source, branch: null };
      const reason = new Error('the caller has left');
      const isReason = (error: unknown): boolean => error === reason;
      await assert.rejects(checkouts.checkOut(request, noProgress, AbortSignal.abort(reason)), isReason);
      const leaving = new AbortController();
      const started = checkouts.checkOut(request, noProgress, leaving.signal);
      leaving.abort(reason);
      await assert.rejects(started, isReason);
      assert.deepEqual((await open(source)).files, { a: '1' });
    },
  ],
  [
    "ends an archive with the signal's reason, and supports cancelling it",
    async ({ checkouts, publish, open }) => {
      const source = await publish(simple);
      const request = { ...source, branch: null };
      const reason = new Error('the caller has left');
      const isReason = (error: unknown): boolean => error === reason;
      const leaving = new AbortController();
      const [unread, begun] = await Promise.all([1, 2].map(() => checkouts.checkOut(request, noProgress, leaving.signal)));
      const [late, early] = [unread?.archive.getReader(), begun?.archive.getReader()];
      assert.equal((await early?.read())?.done, false);
      leaving.abort(reason);
      await assert.rejects(async () => {
        while ((await early?.read())?.done === false);
      }, isReason);
      await assert.rejects(async () => late?.read(), isReason);
      const left = await checkouts.checkOut(request, noProgress, neverAborts);
      await left.archive.cancel();
      assert.deepEqual((await open(source)).files, { a: '1' });
    },
  ],
  [
    'reports its health in one line, can be closed twice, and then fails',
    async ({ checkouts, publish, open }) => {
      const source = await publish(simple);
      assert.match(checkouts.name, /^[a-z][a-z-]*$/u);
      const { ok, detail } = await checkouts.check();
      assert.equal(ok, true, detail);
      assert.match(detail, /^[^\n]+$/u);
      await open(source);
      await checkouts.close();
      await checkouts.close();
      await assert.rejects(open(source));
    },
  ],
];
